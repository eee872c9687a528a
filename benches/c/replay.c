/* Replays a recorded trace on whatever allocator is in front: `lumalloc-bench-replay TRACE [dry]`.
 *
 * Each recorded thread is a thread here, with a stream of its own. A block that another thread made
 * is waited for; beyond that a thread runs at its own speed, but never more than two windows of the
 * recorded order ahead of another. Blocks are written as a program's first writes would: a byte per
 * cache line up to a page, one per page beyond; the first word is checked when the block is resized
 * or freed. The trace is read in pieces (a mapped file would count as resident) and all that this
 * program keeps is in mappings of its own. `dry` does everything but call the allocator: the floor. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* As benches/src/traces/compact.rs writes them. */
enum op { OP_MALLOC = 1, OP_CALLOC = 2, OP_REALLOC = 3, OP_ALIGNED = 4, OP_FREE = 5, OP_WINDOW = 6, OP_START = 7 };
enum { REMOTE = 8 }; /* the slot was last used by another thread */
#define PRIVATE (1u << 31) /* its maker will resize the block before another thread may have it */

struct record {
    uint32_t size_low;
    uint32_t what; /* op and REMOTE in the low 4 bits, log2 of the alignment in the next 6, then size >> 32; PRIVATE */
    uint32_t slot; /* of a window its number, of a start the thread's */
};

struct stream {
    uint64_t offset, records;
};

struct head {
    char magic[8];
    uint32_t threads, slots;
    uint64_t operations;
};

struct slot {
    char *_Atomic block;
    uint64_t size;
};

#define PIECE 4096 /* records read at once */
#define PAGE 4096
#define LINE 64
#define ENDED UINT32_MAX

struct thread {
    struct record piece[PIECE];
    pthread_t handle;
    _Atomic uint32_t window;
    int is_started;
};

static int trace, is_dry;
static struct head head;
static struct stream *streams;
static struct slot *slots;
static struct thread *threads;

static _Noreturn void die(const char *what) {
    fprintf(stderr, "lumalloc-bench-replay: %s\n", what);
    exit(1);
}

static void *mapped(size_t size) {
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) die("no memory for the bookkeeping");
    return map;
}

static void read_at(void *into, size_t size, uint64_t offset) {
    if (pread(trace, into, size, (off_t)offset) != (ssize_t)size) die("the trace is cut short");
}

static uint64_t mark(uint32_t slot) {
    return (slot + 1) * 0x9e3779b97f4a7c15u;
}

/* First writes from `from` on, then the mark. */
static void touch(char *block, uint64_t from, uint64_t size, uint32_t slot) {
    uint64_t step = size <= PAGE ? LINE : PAGE;
    for (uint64_t at = (from + step - 1) / step * step; at < size; at += step) block[at] = (char)at;
    if (size >= sizeof(uint64_t)) {
        uint64_t word = mark(slot);
        memcpy(block, &word, sizeof word);
    }
}

static void check(const char *block, uint64_t size, uint32_t slot) {
    uint64_t word;
    if (size < sizeof word) return;
    memcpy(&word, block, sizeof word);
    if (word != mark(slot)) die("a block lost its contents");
}

/* A private block's address is odd while it is in its slot. */
static char *waited_for(struct slot *slot, uint32_t what) {
    uintptr_t block = (uintptr_t)atomic_load_explicit(&slot->block, memory_order_acquire);
    while ((what & REMOTE) && (block == 0 || block & 1)) {
        sched_yield();
        block = (uintptr_t)atomic_load_explicit(&slot->block, memory_order_acquire);
    }
    if (block == 0) die("the trace frees what it never made");
    return (char *)(block & ~(uintptr_t)1);
}

static void put(struct slot *slot, char *block, uint32_t what) {
    if (what & PRIVATE) block += 1;
    atomic_store_explicit(&slot->block, block, memory_order_release);
}

static char *allocated(uint32_t what, uint64_t size) {
    void *block = NULL;
    switch (what & 7) {
        case OP_MALLOC: block = malloc(size); break;
        case OP_CALLOC: block = calloc(1, size); break;
        default:
            if (posix_memalign(&block, (size_t)1 << (what >> 4 & 63), size) != 0) block = NULL;
    }
    if (block == NULL) die("out of memory");
    return block;
}

static void resize(const struct record *record, struct slot *slot, uint64_t size) {
    char *block = waited_for(slot, record->what);
    uint64_t before = slot->size;
    check(block, before, record->slot);
    block = realloc(block, size);
    if (block == NULL) die("out of memory");
    if (size >= sizeof(uint64_t)) check(block, before, record->slot);
    touch(block, before < size ? before : size, size, record->slot);
    slot->size = size;
    put(slot, block, record->what);
}

static void operate(const struct record *record) {
    struct slot *slot = &slots[record->slot];
    uint64_t size = (uint64_t)((record->what & ~PRIVATE) >> 10) << 32 | record->size_low;
    char *block;
    switch (record->what & 7) {
        case OP_REALLOC: resize(record, slot, size); return;
        case OP_FREE:
            block = waited_for(slot, record->what);
            check(block, slot->size, record->slot);
            atomic_store_explicit(&slot->block, NULL, memory_order_relaxed);
            free(block);
            return;
        default:
            block = allocated(record->what, size);
            touch(block, 0, size, record->slot);
            slot->size = size;
            put(slot, block, record->what);
    }
}

/* The bookkeeping of `operate` alone. */
static void operate_dry(const struct record *record) {
    struct slot *slot = &slots[record->slot];
    uint32_t op = record->what & 7;
    if (op == OP_FREE || op == OP_REALLOC) waited_for(slot, record->what);
    slot->size = record->size_low;
    if (op == OP_FREE) atomic_store_explicit(&slot->block, NULL, memory_order_relaxed);
    else put(slot, (char *)slot, record->what);
}

static void enter_window(struct thread *self, uint32_t window) {
    atomic_store_explicit(&self->window, window, memory_order_release);
    for (uint32_t t = 0; t < head.threads; t++)
        while (atomic_load_explicit(&threads[t].window, memory_order_acquire) + 1 < window) sched_yield();
}

static void *follow(void *argument);

static void start(struct thread *self, uint32_t number) {
    struct thread *thread = &threads[number];
    atomic_store(&thread->window, atomic_load(&self->window));
    if (pthread_create(&thread->handle, NULL, follow, thread) != 0) die("no thread");
    thread->is_started = 1;
}

static void *follow(void *argument) {
    struct thread *self = argument;
    const struct stream *stream = &streams[self - threads];
    for (uint64_t done = 0; done < stream->records;) {
        uint64_t count = stream->records - done < PIECE ? stream->records - done : PIECE;
        read_at(self->piece, count * sizeof *self->piece, stream->offset + done * sizeof *self->piece);
        for (uint64_t i = 0; i < count; i++) {
            const struct record *record = &self->piece[i];
            uint32_t op = record->what & 7;
            if (op == OP_WINDOW) enter_window(self, record->slot);
            else if (op == OP_START) start(self, record->slot);
            else if (is_dry) operate_dry(record);
            else operate(record);
        }
        done += count;
    }
    atomic_store_explicit(&self->window, ENDED - 1, memory_order_release);
    return NULL;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void print_origin(void) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    if (address == NULL || dladdr(address, &info) == 0) die("nobody defines malloc");
    const char *slash = strrchr(info.dli_fname, '/');
    printf("origin %s\n", slash == NULL ? info.dli_fname : slash + 1);
}

int main(int argc, char **argv) {
    if (argc < 2) die("usage: lumalloc-bench-replay TRACE [dry]");
    is_dry = argc > 2 && strcmp(argv[2], "dry") == 0;
    trace = open(argv[1], O_RDONLY);
    if (trace < 0) die(strerror(errno));
    read_at(&head, sizeof head, 0);
    if (memcmp(head.magic, "lumatrc2", 8) != 0 || head.threads == 0) die("this is no trace");
    streams = mapped(head.threads * sizeof *streams);
    read_at(streams, head.threads * sizeof *streams, sizeof head);
    slots = mapped((size_t)head.slots * sizeof *slots + 1);
    threads = mapped(head.threads * sizeof *threads);
    for (uint32_t t = 1; t < head.threads; t++) threads[t].window = ENDED - 1;
    print_origin();
    uint64_t begun = now_ns();
    follow(&threads[0]);
    for (uint32_t t = 1; t < head.threads; t++)
        if (threads[t].is_started) pthread_join(threads[t].handle, NULL);
    printf("result %llu %llu\n", (unsigned long long)head.operations, (unsigned long long)(now_ns() - begun));
    return 0;
}
