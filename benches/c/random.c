/* Random replacement in a working set: free a random block, allocate another of another size. */
#include "harness.h"

#include <stdlib.h>

static void *fresh(uint64_t i) {
    uint64_t *block = must_malloc(size_ring[i % SIZE_RING]);
    *block = i;
    return block;
}

static void replace(struct span *span, uint64_t set, uint64_t count) {
    void **slots = must_malloc(set * sizeof *slots);
    uint64_t state = 88172645463325252u;
    for (uint64_t i = 0; i < set; i++) slots[i] = fresh(i);
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (next_random(&state) >> 32) * set >> 32;
        free(slots[at]);
        slots[at] = fresh(state >> 20);
    }
    span_end(span, count);
    for (uint64_t i = 0; i < set; i++) free(slots[i]);
    free(slots);
}

static void set_of_1e2(struct span *span, unsigned scale) {
    replace(span, 100, scaled(30000000, scale));
}

static void set_of_1e3(struct span *span, unsigned scale) {
    replace(span, 1000, scaled(20000000, scale));
}

static void set_of_1e5(struct span *span, unsigned scale) {
    replace(span, 100000, scaled(6000000, scale));
}

static void set_of_1e6(struct span *span, unsigned scale) {
    replace(span, 1000000, scaled(3000000, scale));
}

/* The same set of 1000 with calloc: the zeroing counts. */
static void calloc_1e3(struct span *span, unsigned scale) {
    enum { SET = 1000 };
    static void *slots[SET];
    uint64_t count = scaled(10000000, scale);
    uint64_t state = 88172645463325252u;
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (next_random(&state) >> 32) * SET >> 32;
        free(slots[at]);
        uint64_t *block = calloc(1, size_ring[i % SIZE_RING]);
        if (block == NULL) die("out of memory");
        if (*block != 0) die("calloc gave a block that is not zero");
        *block = i;
        slots[at] = block;
    }
    span_end(span, count);
    for (int i = 0; i < SET; i++) free(slots[i]);
}

/* 1 MiB zeroed, one page of it used: who knows that fresh pages are zero does not write them. */
static void calloc_large(struct span *span, unsigned scale) {
    enum { LIVE = 8 };
    void *slots[LIVE] = {NULL};
    uint64_t count = scaled(20000, scale);
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        free(slots[i % LIVE]);
        uint64_t *block = calloc(1, 1 << 20);
        if (block == NULL) die("out of memory");
        *block = i + 1;
        slots[i % LIVE] = block;
    }
    span_end(span, count);
    for (int i = 0; i < LIVE; i++) free(slots[i]);
}

const struct workload random_workloads[] = {
    {"random-1e2", set_of_1e2},
    {"random-1e3", set_of_1e3},
    {"random-1e5", set_of_1e5},
    {"random-1e6", set_of_1e6},
    {"calloc", calloc_1e3},
    {"calloc-large", calloc_large},
    {NULL, NULL},
};
