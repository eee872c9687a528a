/* One size class at a time: about a MiB of blocks of one size, all freed in random order, again and
 * again; and blocks that must be aligned. */
#include "harness.h"

#include <stdlib.h>

#define LIVE_BYTES (1u << 20)
#define MOST (LIVE_BYTES / 16)

static void *slots[MOST];
static uint32_t order[MOST];

static void of_one_size(struct span *span, uint64_t count, size_t size) {
    uint32_t set = LIVE_BYTES / (uint32_t)size;
    uint64_t rounds = count / set == 0 ? 1 : count / set;
    shuffle(order, set);
    span_begin(span);
    for (uint64_t r = 0; r < rounds; r++) {
        for (uint32_t i = 0; i < set; i++) {
            uint64_t *block = must_malloc(size);
            *block = i;
            slots[i] = block;
        }
        for (uint32_t i = 0; i < set; i++) free(slots[order[i]]);
    }
    span_end(span, rounds * set);
}

static void class_16(struct span *span, unsigned scale) {
    of_one_size(span, scaled(20000000, scale), 16);
}

static void class_128(struct span *span, unsigned scale) {
    of_one_size(span, scaled(15000000, scale), 128);
}

static void class_1024(struct span *span, unsigned scale) {
    of_one_size(span, scaled(10000000, scale), 1024);
}

static void class_4096(struct span *span, unsigned scale) {
    of_one_size(span, scaled(8000000, scale), 4096);
}

static void class_32768(struct span *span, unsigned scale) {
    of_one_size(span, scaled(6000000, scale), 32768);
}

/* Random replacement in a set of 1000, mixed sizes, aligned to 32 bytes up to a page. */
static void aligned(struct span *span, unsigned scale) {
    enum { SET = 1000 };
    uint64_t count = scaled(10000000, scale), state = 88172645463325252u;
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (next_random(&state) >> 32) * SET >> 32;
        size_t alignment = 32u << (state >> 20) % 8;
        free(slots[at]);
        if (posix_memalign(&slots[at], alignment, size_ring[i % SIZE_RING]) != 0) die("out of memory");
        *(uint64_t *)slots[at] = i;
    }
    span_end(span, count);
    for (int i = 0; i < SET; i++) free(slots[i]);
}

const struct workload class_workloads[] = {
    {"class-16", class_16},       {"class-128", class_128},     {"class-1024", class_1024},
    {"class-4096", class_4096},   {"class-32768", class_32768}, {"aligned", aligned},
    {NULL, NULL},
};
