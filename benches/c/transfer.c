/* Blocks that wander between threads.
 *   mstress: threads swap random blocks through a common table; all of them die each round and leave
 *            half of what they hold to the next (the idea of mimalloc's test-stress);
 *   batches: each thread allocates a batch of 8 to 16000 bytes, all of which its neighbour frees in
 *            another order, in lock step, so that the blocks in flight are the same for everybody. */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MOST_THREADS 64
#define SLOTS 500
#define TABLE 1000
#define ROUNDS 20

static void *_Atomic table[TABLE];

struct worker {
    void *slots[SLOTS];
    uint64_t state;
    uint64_t steps;
};

static struct worker workers[MOST_THREADS];

/* One block in 64 is up to 32 times as large, one in 1024 is 64 to 512 KiB. */
static void *wandering(uint64_t random) {
    size_t size = size_ring[(random >> 20) % SIZE_RING];
    if (random % 1024 == 0)
        size = (64u << 10) + (random >> 40) % (448u << 10);
    else if (random % 64 == 0)
        size *= 1 + (random >> 40) % 32;
    void *block = must_malloc(size);
    touch(block, size);
    return block;
}

static void *wander(void *argument) {
    struct worker *worker = argument;
    uint64_t state = worker->state;
    for (uint64_t i = 0; i < worker->steps; i++) {
        uint64_t random = next_random(&state);
        void **slot = &worker->slots[(random >> 32) % SLOTS];
        if (random >> 30 & 1)
            *slot = atomic_exchange(&table[(random >> 8) % TABLE], *slot);
        free(*slot);
        *slot = wandering(random);
    }
    for (int i = 0; i < SLOTS; i += 2) {
        free(worker->slots[i]);
        worker->slots[i] = NULL;
    }
    worker->state = state;
    return NULL;
}

static void mstress(struct span *span, unsigned scale, int threads) {
    pthread_t running[MOST_THREADS];
    uint64_t steps = scaled(8000000, scale) / (uint64_t)threads / ROUNDS + 1;
    for (int t = 0; t < threads; t++) {
        workers[t].state = 88172645463325252u + (uint64_t)t;
        workers[t].steps = steps;
    }
    span_begin(span);
    for (int round = 0; round < ROUNDS; round++) {
        for (int t = 0; t < threads; t++)
            if (pthread_create(&running[t], NULL, wander, &workers[t]) != 0) die("no thread");
        for (int t = 0; t < threads; t++) pthread_join(running[t], NULL);
    }
    span_end(span, (uint64_t)threads * ROUNDS * steps);
    for (int t = 0; t < threads; t++)
        for (int i = 0; i < SLOTS; i++) free(workers[t].slots[i]);
    for (int i = 0; i < TABLE; i++) free(atomic_exchange(&table[i], NULL));
}

static void mstress_2(struct span *span, unsigned scale) {
    mstress(span, scale, 2);
}

static void mstress_16(struct span *span, unsigned scale) {
    mstress(span, scale, 16);
}

static void mstress_64(struct span *span, unsigned scale) {
    mstress(span, scale, 64);
}

#define BATCH 400
static void *passed[2][MOST_THREADS][BATCH];
static uint32_t order[BATCH];
static uint64_t phases;
static int passing;
static pthread_barrier_t step;

/* 8 to 16000 bytes, uniform in their logarithm but for the last octave. */
static size_t batch_size(uint64_t random) {
    size_t octave = (size_t)8 << (random >> 32) % 11, size = octave + (random >> 8) % octave;
    return size < 16000 ? size : 16000;
}

static void *pass_on(void *argument) {
    int self = (int)(size_t)argument, neighbour = (self + 1) % passing;
    uint64_t state = 88172645463325252u + (uint64_t)self;
    for (uint64_t p = 0; p < phases; p++) {
        for (int i = 0; i < BATCH; i++) {
            size_t size = batch_size(next_random(&state));
            void *block = must_malloc(size);
            touch(block, size);
            passed[p % 2][self][i] = block;
        }
        pthread_barrier_wait(&step);
        for (int i = 0; i < BATCH; i++) free(passed[p % 2][neighbour][order[i]]);
    }
    return NULL;
}

static void batches(struct span *span, unsigned scale, int threads) {
    pthread_t running[MOST_THREADS];
    phases = scaled(6400000, scale) / (uint64_t)threads / BATCH + 1;
    passing = threads;
    shuffle(order, BATCH);
    pthread_barrier_init(&step, NULL, (unsigned)threads);
    span_begin(span);
    for (int t = 0; t < threads; t++)
        if (pthread_create(&running[t], NULL, pass_on, (void *)(size_t)t) != 0) die("no thread");
    for (int t = 0; t < threads; t++) pthread_join(running[t], NULL);
    span_end(span, phases * (uint64_t)threads * BATCH);
}

static void batches_1(struct span *span, unsigned scale) {
    batches(span, scale, 1);
}

static void batches_2(struct span *span, unsigned scale) {
    batches(span, scale, 2);
}

static void batches_16(struct span *span, unsigned scale) {
    batches(span, scale, 16);
}

static void batches_64(struct span *span, unsigned scale) {
    batches(span, scale, 64);
}

const struct workload transfer_workloads[] = {
    {"mstress-2", mstress_2}, {"mstress-16", mstress_16}, {"mstress-64", mstress_64}, {"batches-1", batches_1},
    {"batches-2", batches_2}, {"batches-16", batches_16}, {"batches-64", batches_64}, {NULL, NULL},
};
