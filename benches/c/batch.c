/* A thousand blocks of 64 bytes allocated, then all freed: last first (LIFO) or first first (FIFO). */
#include "harness.h"

#include <stdlib.h>

#define BATCH 1000
#define BLOCK 64

static void *slots[BATCH];

static void fill(void) {
    for (int i = 0; i < BATCH; i++) {
        uint64_t *block = must_malloc(BLOCK);
        *block = (uint64_t)i;
        slots[i] = block;
    }
}

static void free_last_first(void) {
    for (int i = BATCH; i-- > 0;) free(slots[i]);
}

static void free_first_first(void) {
    for (int i = 0; i < BATCH; i++) free(slots[i]);
}

static void batches(struct span *span, unsigned scale, void (*empty)(void)) {
    uint64_t rounds = scaled(30000, scale);
    fill();
    empty();
    span_begin(span);
    for (uint64_t i = 0; i < rounds; i++) {
        fill();
        empty();
    }
    span_end(span, rounds * BATCH);
}

static void lifo(struct span *span, unsigned scale) {
    batches(span, scale, free_last_first);
}

static void fifo(struct span *span, unsigned scale) {
    batches(span, scale, free_first_first);
}

const struct workload batch_workloads[] = {
    {"lifo", lifo},
    {"fifo", fifo},
    {NULL, NULL},
};
