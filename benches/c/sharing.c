/* False sharing: two threads write to small blocks of their own, all the time. An allocator that gives
 * them blocks of one cache line makes them wait for each other.
 *   thrash:  actively: each thread allocates its blocks itself (Hoard's cache-thrash);
 *   scratch: passively: each begins by freeing a block that one thread allocated beside the other's
 *            (cache-scratch). */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 2
#define BLOCK 8
#define WRITES 500

struct writer {
    void *first;
    uint64_t blocks;
};

static void *write_on(void *argument) {
    struct writer *writer = argument;
    free(writer->first);
    for (uint64_t i = 0; i < writer->blocks; i++) {
        volatile char *block = must_malloc(BLOCK);
        for (int w = 0; w < WRITES; w++) block[w % BLOCK]++;
        free((void *)block);
    }
    return NULL;
}

static void sharing(struct span *span, unsigned scale, int passive) {
    struct writer writers[THREADS];
    pthread_t threads[THREADS];
    uint64_t blocks = scaled(400000, scale);
    for (int t = 0; t < THREADS; t++) writers[t] = (struct writer){passive ? must_malloc(BLOCK) : NULL, blocks};
    span_begin(span);
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, write_on, &writers[t]) != 0) die("no thread");
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    span_end(span, THREADS * blocks);
}

static void thrash(struct span *span, unsigned scale) {
    sharing(span, scale, 0);
}

static void scratch(struct span *span, unsigned scale) {
    sharing(span, scale, 1);
}

const struct workload sharing_workloads[] = {
    {"thrash", thrash},
    {"scratch", scratch},
    {NULL, NULL},
};
