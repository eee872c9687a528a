/* A malloc/free pair: the shortest way through the allocator, always the same block. */
#include "harness.h"

#include <stdlib.h>

static void pair_32(struct span *span, unsigned scale) {
    uint64_t count = scaled(60000000, scale);
    for (uint64_t i = 0; i < 10000; i++) {
        void *block = malloc(32);
        escape(block);
        free(block);
    }
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        void *block = malloc(32);
        escape(block);
        free(block);
    }
    span_end(span, count);
}

/* The same with sizes that change: the size-to-class step can't be guessed. */
static void pair_mixed(struct span *span, unsigned scale) {
    uint64_t count = scaled(40000000, scale);
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        void *block = malloc(size_ring[i % SIZE_RING]);
        escape(block);
        free(block);
    }
    span_end(span, count);
}

const struct workload pair_workloads[] = {
    {"pair", pair_32},
    {"pair-mixed", pair_mixed},
    {NULL, NULL},
};
