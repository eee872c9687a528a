/* Larson's idea: a server whose threads die, and whose successors free what they left behind. One
 * to 64 chains of threads run at once; each generation takes over the next chain's blocks. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

#define MOST_CHAINS 64
#define LIVE 1000

struct post {
    void *slots[LIVE];
    uint64_t state;
    uint64_t replacements;
};

static struct post posts[MOST_CHAINS];

static void *serve(void *argument) {
    struct post *post = argument;
    uint64_t state = post->state;
    for (uint64_t i = 0; i < post->replacements; i++) {
        uint64_t at = (next_random(&state) >> 32) * LIVE >> 32;
        free(post->slots[at]);
        uint64_t *block = must_malloc(size_ring[(state >> 20) % SIZE_RING]);
        *block = state;
        post->slots[at] = block;
    }
    post->state = state;
    return NULL;
}

/* 400 threads in all, whatever the number of chains. */
static void succession(struct span *span, unsigned scale, int chains) {
    const uint64_t generations = 400 / (uint64_t)chains;
    pthread_t threads[MOST_CHAINS];
    uint64_t replacements = scaled(40000, scale);
    for (int c = 0; c < chains; c++) {
        posts[c].state = 88172645463325252u + (uint64_t)c;
        posts[c].replacements = replacements;
    }
    span_begin(span);
    for (uint64_t g = 0; g < generations; g++) {
        for (int c = 0; c < chains; c++) {
            struct post *post = &posts[(g + (uint64_t)c) % (uint64_t)chains];
            if (pthread_create(&threads[c], NULL, serve, post) != 0) die("no thread");
        }
        for (int c = 0; c < chains; c++) pthread_join(threads[c], NULL);
    }
    span_end(span, generations * (uint64_t)chains * replacements);
    for (int c = 0; c < chains; c++)
        for (int i = 0; i < LIVE; i++) free(posts[c].slots[i]);
}

static void larson_1(struct span *span, unsigned scale) {
    succession(span, scale, 1);
}

static void larson_2(struct span *span, unsigned scale) {
    succession(span, scale, 2);
}

static void larson_4(struct span *span, unsigned scale) {
    succession(span, scale, 4);
}

static void larson_16(struct span *span, unsigned scale) {
    succession(span, scale, 16);
}

static void larson_64(struct span *span, unsigned scale) {
    succession(span, scale, 64);
}

const struct workload succession_workloads[] = {
    {"larson-1", larson_1},   {"larson", larson_2},     {"larson-4", larson_4},
    {"larson-16", larson_16}, {"larson-64", larson_64}, {NULL, NULL},
};
