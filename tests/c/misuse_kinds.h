/* Misuses that C and C++ have in common: see misuse.c. Before this, `allocate` and `deallocate` are defined. The
 * program has a table of what it commits, made of MISUSE, PROMISE and ONCE. */
#ifndef MISUSE_KINDS_H
#define MISUSE_KINDS_H

#include <sys/mman.h>

#include "death_common.h"

enum { ROUNDS = 1024, MANY_ROUNDS = 256 * 1024 };
static const size_t MIB = (size_t)1 << 20;

static size_t size;

static void unnoticed(void) {
    /* A stream would allocate its buffer here, and the block that was freed may be it. */
    static const char said[] = "unnoticed\n";
    if (write(1, said, sizeof said - 1) < 0) _exit(9);
}

static unsigned char *block(void) {
    unsigned char *made = (unsigned char *)opaque(allocate(size));
    if (made == NULL) _exit(9);
    return made;
}

static void release(void *pointer) { deallocate(opaque(pointer)); }

static void touch(unsigned char *place) { *(volatile unsigned char *)place ^= 'A'; }

static void cycle(int rounds) {
    for (int i = 0; i < rounds; i++) release(block());
}

/* Double frees. */
static void twice(void) {
    void *p = block();
    release(p);
    release(p);
}
static void twice_delayed(void) {
    void *p = block();
    release(p);
    cycle(ROUNDS);
    release(p);
}
static void twice_interleaved(void) {
    void *p = block(), *q = block();
    release(p);
    release(q);
    release(p);
}
static void twice_then_used(void) {
    twice();
    cycle(MANY_ROUNDS);
}
static void twice_over_a_new_owner(void) {
    void *p = block();
    release(p);
    void *q = block();
    release(p);
    release(q);
}

/* Frees of what is no block. */
static void free_a_number(void) { release((void *)(uintptr_t)1); }
static void free_the_stack(void) {
    unsigned char here[64];
    release(here);
}
static void free_inside_the_stack(void) {
    unsigned char *here = (unsigned char *)__builtin_alloca(size < 65536 ? size : 65536);
    release(here + 8);
}
static void free_by(size_t distance) { release(block() + distance); }
static void free_a_page_on(void) { free_by(4096); }
static void free_far_on(void) { free_by(MIB * 512); }
static void free_at_an_odd_address(void) { free_by(1); }
static void free_a_word_on(void) { free_by(8); }

/* Writes beside a block. */
static void over(size_t bytes, int is_freed) {
    unsigned char *p = block();
    touch(p + size - 1 + bytes);
    if (is_freed) release(p);
}
static void under(size_t bytes, int is_freed) {
    unsigned char *p = block();
    touch(p - bytes);
    if (is_freed) release(p);
}
static void over_by_1(void) { over(1, 1); }
static void over_by_32(void) { over(32, 1); }
static void over_by_a_mib(void) { over(MIB, 1); }
static void under_by_1(void) { under(1, 1); }
static void under_by_32(void) { under(32, 1); }
static void under_by_a_mib(void) { under(MIB, 1); }
static void copy_over(size_t bytes) {
    unsigned char *from = (unsigned char *)mmap(NULL, size + bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(block(), from, size + bytes);
}
static void copy_under(size_t bytes) {
    unsigned char *from = (unsigned char *)mmap(NULL, size + bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(block() - bytes, from, size + bytes);
}
static void copy_over_by_1(void) { copy_over(1); }
static void copy_over_by_32(void) { copy_over(32); }
static void copy_over_by_a_mib(void) { copy_over(MIB); }
static void copy_under_by_1(void) { copy_under(1); }
static void copy_under_by_32(void) { copy_under(32); }
static void copy_under_by_a_mib(void) { copy_under(MIB); }

/* Uses of a freed block. */
static void write_after_free(void) {
    unsigned char *p = block();
    release(p);
    memset(p, 'A', size);
}
static void write_after_free_then_used(void) {
    write_after_free();
    cycle(MANY_ROUNDS);
}


/* Allocates 3 MiB of each of several sizes and frees it, so that the pages of later slabs and of large blocks
 * were used before. */
static void warm_up(void) {
    enum { BLOCKS = 262144 };
    static void *made[BLOCKS];
    static const size_t SIZES[] = {16, 96, 512, 1000, 4096, 200000, 1 << 20};
    for (int round = 0; round < 2; round++) {
        size_t count = 0;
        for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
            for (size_t bytes = 0; bytes < 3 * MIB && count < BLOCKS; bytes += SIZES[i]) {
                made[count] = opaque(allocate(SIZES[i]));
                memset(made[count++], 'A', SIZES[i]);
            }
        }
        while (count > 0) release(made[--count]);
    }
}
static void write_after_free_when_warm(void) {
    warm_up();
    write_after_free();
}
static void write_after_free_when_warm_then_used(void) {
    write_after_free_when_warm();
    cycle(MANY_ROUNDS);
}

/* Promises. */
static int is_zero(const unsigned char *p) {
    for (size_t i = 0; i < size; i++) {
        if (p[i] != 0) return 0;
    }
    return 1;
}
static int zeroed_when_freed(void) {
    unsigned char *p = block();
    memset(p, 'A', size);
    release(p);
    return is_zero((unsigned char *)opaque(p));
}
static int zeroed_when_allocated(void) { return is_zero(block()); }
static int not_reused_at_once(void) {
    unsigned char *p = block();
    release(p);
    return block() != p;
}
static int not_reused_by_a_smaller_one(void) {
    unsigned char *p = block();
    release(p);
    return opaque(allocate(size - 1)) != p;
}

/* Blocks of no bytes. */
static void read_nothing(void) { (void)*(volatile unsigned char *)opaque(allocate(0)); }
static void read_nothing_and_free(void) {
    void *p = opaque(allocate(0));
    (void)*(volatile unsigned char *)p;
    release(p);
}
static void write_nothing(void) { touch((unsigned char *)opaque(allocate(0))); }
static void write_nothing_and_free(void) {
    unsigned char *p = (unsigned char *)opaque(allocate(0));
    touch(p);
    release(p);
}
static void run_the_heap(void) {
    unsigned char *p = block();
    *p = 0xc3;
    void (*code)(void) = (void (*)(void))(uintptr_t)p;
    code();
}

struct kind {
    const char *name;
    int is_sized;
    void (*misuse)(void);
    int (*promise)(void);
};

#define MISUSE(name) {#name, 1, name, NULL}
#define PROMISE(name) {#name, 1, NULL, name}
#define ONCE(name) {#name, 0, name, NULL}

#define COMMON_KINDS \
    MISUSE(twice), MISUSE(twice_delayed), MISUSE(twice_interleaved), MISUSE(twice_then_used), \
    MISUSE(twice_over_a_new_owner), ONCE(free_a_number), ONCE(free_the_stack), MISUSE(free_inside_the_stack), \
    MISUSE(free_a_page_on), MISUSE(free_far_on), MISUSE(free_at_an_odd_address), MISUSE(free_a_word_on), \
    MISUSE(over_by_1), MISUSE(over_by_32), MISUSE(over_by_a_mib), MISUSE(under_by_1), MISUSE(under_by_32), \
    MISUSE(under_by_a_mib), MISUSE(copy_over_by_1), MISUSE(copy_over_by_32), MISUSE(copy_over_by_a_mib), \
    MISUSE(copy_under_by_1), MISUSE(copy_under_by_32), MISUSE(copy_under_by_a_mib), MISUSE(write_after_free), \
    MISUSE(write_after_free_then_used), MISUSE(write_after_free_when_warm), \
    MISUSE(write_after_free_when_warm_then_used), PROMISE(zeroed_when_freed), PROMISE(zeroed_when_allocated), \
    PROMISE(not_reused_at_once), PROMISE(not_reused_by_a_smaller_one)

#define KINDS_OF_NOTHING \
    ONCE(read_nothing), ONCE(read_nothing_and_free), ONCE(write_nothing), ONCE(write_nothing_and_free), \
    MISUSE(run_the_heap)

/* Commits what the arguments say, or lists the kinds. Returns the status of the program. */
static int commit(const struct kind *kinds, size_t count, int argc, char **argv) {
    if (argc < 2) return 2;
    size = argc > 2 ? (size_t)atol(argv[2]) : 16;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(argv[1], "list") == 0) {
            printf("%s%s\n", kinds[i].name, kinds[i].is_sized ? " sized" : "");
        } else if (strcmp(argv[1], kinds[i].name) == 0) {
            if (kinds[i].promise != NULL && kinds[i].promise()) return 0;
            if (kinds[i].misuse != NULL) kinds[i].misuse();
            unnoticed();
            return 0;
        }
    }
    return strcmp(argv[1], "list") == 0 ? 0 : 2;
}

#endif
