/* Larson's idea: a server whose threads die, and whose successors free what they left behind. Two
 * chains of threads run at once; each generation takes over the other chain's blocks. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

#define CHAINS 2
#define LIVE 1000

struct post {
    void *slots[LIVE];
    uint64_t state;
    uint64_t replacements;
};

static struct post posts[CHAINS];

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

static void larson(struct span *span, unsigned scale) {
    const uint64_t generations = 200;
    pthread_t threads[CHAINS];
    uint64_t replacements = scaled(40000, scale);
    for (int c = 0; c < CHAINS; c++) {
        posts[c].state = 88172645463325252u + (uint64_t)c;
        posts[c].replacements = replacements;
    }
    span_begin(span);
    for (uint64_t g = 0; g < generations; g++) {
        for (int c = 0; c < CHAINS; c++)
            if (pthread_create(&threads[c], NULL, serve, &posts[(g + (uint64_t)c) % CHAINS]) != 0) die("no thread");
        for (int c = 0; c < CHAINS; c++) pthread_join(threads[c], NULL);
    }
    span_end(span, generations * CHAINS * replacements);
    for (int c = 0; c < CHAINS; c++)
        for (int i = 0; i < LIVE; i++) free(posts[c].slots[i]);
}

const struct workload succession_workloads[] = {
    {"larson", larson},
    {NULL, NULL},
};
