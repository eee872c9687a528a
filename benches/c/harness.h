/* What every C workload shares: the clock, the barrier against the optimiser, sizes, the table row. */
#ifndef LUMALLOC_BENCH_HARNESS_H
#define LUMALLOC_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

/* What one workload did between span_begin and span_end. */
struct span {
    uint64_t operations; /* pairs of an allocation and a free; for growth: calls of realloc */
    uint64_t wall_ns;
};

void span_begin(struct span *span);
void span_end(struct span *span, uint64_t operations);

/* Where a run that was asked to idle does so: at the end of the workload, or earlier, where a
 * workload calls it because its threads and blocks are to be there meanwhile. Only the first call
 * counts. */
void idle_here(void);

/* A row of a file's table; a NULL name ends the table. `scale` is 1..100 per cent of the full run. */
struct workload {
    const char *name;
    void (*run)(struct span *span, unsigned scale);
};

extern const struct workload pair_workloads[];
extern const struct workload batch_workloads[];
extern const struct workload random_workloads[];
extern const struct workload grow_workloads[];
extern const struct workload thread_workloads[];
extern const struct workload succession_workloads[];
extern const struct workload class_workloads[];
extern const struct workload transfer_workloads[];
extern const struct workload sharing_workloads[];
extern const struct workload idle_workloads[];
extern const struct workload producer_workloads[];
extern const struct workload large_workloads[];

/* The block may now be known to anyone: the pair cannot be optimised away. */
static inline void escape(void *block) {
    __asm__ volatile("" : : "g"(block) : "memory");
}

/* `full` operations at 100 per cent, at least one. */
static inline uint64_t scaled(uint64_t full, unsigned scale) {
    uint64_t count = full * scale / 100;
    return count == 0 ? 1 : count;
}

/* xorshift64: the same numbers in every run, for every allocator. */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* Sizes 16..1023, uniform in their logarithm, as programs ask for them: made once, read in a ring. */
#define SIZE_RING 4096
extern uint16_t size_ring[SIZE_RING];

/* Numbers 0..count-1, in a random order that is the same in every run. */
void shuffle(uint32_t *order, uint32_t count);

/* Writes the first bytes of a block and one byte of every further page of it. */
void touch(void *block, size_t size);

/* malloc that ends the run with a message instead of answering NULL. */
void *must_malloc(size_t size);
_Noreturn void die(const char *what);

#endif
