/* A storm: threads take, resize, look at and free blocks of 0 bytes to 64 MiB, which they share, and
 * check all that an allocator promises. Run it under refuse.c, or with a hardship of storm_hardship.h.
 *
 *   storm OPERATIONS [THREADS [BUDGET_MIB [SEED [HARDSHIP]]]]
 *
 * Prints operations, requests that were answered NULL, and refused system calls. */
#include <malloc.h>
#include <sched.h>

#include "storm_hardship.h"

enum { SLOTS = 4096, PARTS = 4, MOST_THREADS = 64, STACK = 256 << 10, ZERO_FLAG = 0x40 };

__attribute__((weak)) long refused_calls(void);
__attribute__((weak)) void *mallocx(size_t, int);
__attribute__((weak)) void *rallocx(void *, size_t, int);
__attribute__((weak)) size_t sallocx(const void *, int);

typedef struct {
    pthread_mutex_t lock;
    Block block;
} Slot;

typedef struct {
    uint64_t state;
    long operations;
} Worker;

static Slot slots[SLOTS];
static size_t budget;
static atomic_size_t held;
static atomic_long nulls;
static atomic_int working;

static uint64_t random64(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545F4914F6CDD1Du;
}

/* Small sizes are common, and long ones take most of the memory. */
static size_t random_size(uint64_t *state) {
    uint64_t random = random64(state) >> 8, kind = random % 100;
    random /= 100;
    if (kind < 45) return random % 512;
    if (kind < 70) return random % (16 << 10);
    if (kind < 85) return random % (256 << 10);
    if (kind < 94) return random % (2 << 20);
    if (kind < 98) return (4 << 20) + random % (8 << 20);
    return random % (64 << 20);
}

/* Most long blocks are written everywhere, some here and there. */
static size_t random_step(size_t size, uint64_t *state) {
    return size >= 1 << 20 && random64(state) % 4 == 0 ? 17 * STORM_PAGE : STORM_PAGE;
}

static void own(Slot *slot, void *data, size_t size, uint64_t *state) {
    slot->block = (Block){data, size, random_step(size, state), random64(state)};
    write_tags(&slot->block);
    atomic_fetch_add(&held, size);
}

static void drop(Slot *slot) {
    Block *block = &slot->block;
    if (block->data == NULL) return;
    check_tags(block, block->size, "before free");
    atomic_fetch_sub(&held, block->size);
    remove_range(block->data);
    free(block->data);
    block->data = NULL;
}

/* --- requests --------------------------------------------------------------------------------- */

static void *take_zeros(size_t size) {
    unsigned char *data = calloc(1, size);
    if (data != NULL) check_zero(data, 0, size, "calloc");
    return data;
}

/* Zero is all that may be used, not only what was asked for. */
static void *take_zeros_by_flag(size_t size) {
    if (mallocx == NULL || size == 0) return take_zeros(size);
    unsigned char *data = mallocx(size, ZERO_FLAG);
    if (data != NULL) check_zero(data, 0, malloc_usable_size(data), "mallocx with MALLOCX_ZERO");
    return data;
}

static void *take_aligned(size_t size, size_t align) {
    void *data;
    return posix_memalign(&data, align, size) == 0 ? data : NULL;
}

static void take(Slot *slot, size_t size, uint64_t *state) {
    uint64_t kind = random64(state) % 32;
    size_t align = 1;
    void *data;
    drop(slot);
    if (kind < 5) data = take_zeros(size);
    else if (kind < 7) data = take_zeros_by_flag(size);
    else if (kind < 12) data = take_aligned(size, align = (size_t)16 << random64(state) % 18);
    else data = malloc(size);
    if (data == NULL) {
        atomic_fetch_add(&nulls, 1);
        return;
    }
    size_t usable = malloc_usable_size(data);
    check_place(data, size, align, usable, "a request");
    add_range(data, usable, "a request");
    own(slot, data, size, state);
}

/* As realloc, or as rallocx with zeros behind the old end. */
static void *resized(Block *block, size_t size, bool zeros) {
    if (!zeros || rallocx == NULL) return realloc(block->data, size);
    size_t before = malloc_usable_size(block->data);
    unsigned char *data = rallocx(block->data, size, ZERO_FLAG);
    if (data != NULL && malloc_usable_size(data) > before)
        check_zero(data, before, malloc_usable_size(data), "rallocx with MALLOCX_ZERO");
    return data;
}

static void resize(Slot *slot, size_t size, uint64_t *state) {
    Block *block = &slot->block;
    if (block->data == NULL) return;
    /* Twice of three times a little more, as buffers grow. */
    if (random64(state) % 3 != 0) size = block->size + random64(state) % (block->size / 2 + 64);
    if (size == 0) size = 1;
    check_tags(block, block->size, "before realloc");
    size_t old_usable = malloc_usable_size(block->data);
    remove_range(block->data);
    void *data = resized(block, size, random64(state) % 4 == 0);
    if (data == NULL) {
        atomic_fetch_add(&nulls, 1);
        add_range(block->data, old_usable, "a realloc that returned NULL");
        check_tags(block, block->size, "after a realloc that returned NULL");
        return;
    }
    size_t usable = malloc_usable_size(data);
    add_range(data, usable, "realloc");
    check_place(data, size, 1, usable, "realloc");
    block->data = data;
    check_tags(block, size < block->size ? size : block->size, "after realloc");
    atomic_fetch_sub(&held, block->size);
    own(slot, data, size, state);
}

static void look(Slot *slot) {
    if (slot->block.data != NULL) check_tags(&slot->block, slot->block.size, "at a look");
}

static void operate(uint64_t *state) {
    Slot *slot = &slots[random64(state) % SLOTS];
    uint64_t what = random64(state) % 100;
    size_t size = random_size(state);
    pthread_mutex_lock(&slot->lock);
    if (atomic_load(&held) + size > budget) drop(slot);
    else if (what < 40) take(slot, size, state);
    else if (what < 70) resize(slot, size, state);
    else if (what < 90) drop(slot);
    else look(slot);
    pthread_mutex_unlock(&slot->lock);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *work(void *argument) {
    Worker *worker = argument;
    for (long i = 0; i < worker->operations; i++) operate(&worker->state);
    atomic_fetch_sub(&working, 1);
    return NULL;
}

/* On a stack of ours: the C library would need system calls for one of its own. Where all memory is
 * refused there can be no thread either, and the caller does the work. */
static bool start(pthread_t *thread, Worker *worker, int number) {
    static char stacks[MOST_THREADS][STACK] __attribute__((aligned(STORM_PAGE)));
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stacks[number], STACK) == 0);
    int status = pthread_create(thread, &attributes, work, worker);
    CHECK(status == 0 || status == ENOMEM || status == EAGAIN);
    CHECK(pthread_attr_destroy(&attributes) == 0);
    if (status != 0) work(worker);
    return status == 0;
}

/* New threads do a part of the work, on blocks that earlier ones left. The first part is a short one
 * without hardship. */
static void run_part(int part, int threads, long operations, uint64_t seed, const char *hardship) {
    pthread_t running[MOST_THREADS];
    bool is_running[MOST_THREADS];
    Worker workers[MOST_THREADS];
    uint32_t state = (uint32_t)seed | 1;
    atomic_store(&working, threads);
    for (int i = 0; i < threads; i++) {
        uint64_t number = (uint64_t)part * MOST_THREADS + (uint64_t)i + 1;
        workers[i] = (Worker){(seed + number) * 0x9E3779B97F4A7C15u | 1, operations / threads};
        is_running[i] = start(&running[i], &workers[i], i);
    }
    while (atomic_load(&working) > 0) {
        if (part > 0) continue_hardship(hardship, &state);
        sleep_ms(1);
    }
    for (int i = 0; i < threads; i++)
        if (is_running[i]) CHECK(pthread_join(running[i], NULL) == 0);
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value == NULL ? "" : value;
}

static const char *options(void) {
    const char *ours = variable("LUMALLOC_CONF");
    return *ours == 0 ? variable("MALLOC_CONF") : ours;
}

static void note_how_to_repeat(long operations, int threads, uint64_t seed, const char *hardship) {
    snprintf(storm_repeat, sizeof storm_repeat,
             "LUMALLOC_CONF=%s REFUSE=%s REFUSE_EVERY=%s REFUSE_AFTER=%s storm %ld %d %zu %llu %s",
             options(), variable("REFUSE"), variable("REFUSE_EVERY"),
             variable("REFUSE_AFTER"), operations, threads, budget >> 20, (unsigned long long)seed,
             hardship);
}

int main(int argc, char **argv) {
    CHECK(argc >= 2);
    long operations = atol(argv[1]);
    int threads = argc > 2 ? atoi(argv[2]) : 4;
    budget = (argc > 3 ? strtoul(argv[3], NULL, 10) : 600) << 20;
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    const char *hardship = argc > 5 ? argv[5] : "";
    CHECK(threads > 0 && threads <= MOST_THREADS);
    note_how_to_repeat(operations, threads, seed, hardship);
    for (int i = 0; i < SLOTS; i++) CHECK(pthread_mutex_init(&slots[i].lock, NULL) == 0);
    for (int part = 0; part < PARTS; part++) {
        if (part == 1) begin_hardship(hardship);
        run_part(part, threads, part == 0 ? operations / 64 : operations / PARTS, seed, hardship);
        /* So that the heap shrinks and grows again. */
        for (int i = 0; i < SLOTS; i++)
            if (i % PARTS != part) drop(&slots[i]);
    }
    for (int i = 0; i < SLOTS; i++) drop(&slots[i]);
    end_hardship(hardship);
    say("operations=%ld nulls=%ld refused=%ld\n", operations, atomic_load(&nulls),
        refused_calls == NULL ? 0 : refused_calls());
    return 0;
}
