/* Two thousand threads that each did a little work and now wait, as the threads of a pool do. */
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 2000
#define BLOCKS 500
#define KEPT 10

static pthread_barrier_t all_idle, all_over;

static void *work_and_wait(void *argument) {
    uint64_t seed = (uint64_t)(size_t)argument;
    void *blocks[BLOCKS];
    for (uint64_t i = 0; i < BLOCKS; i++) {
        size_t size = size_ring[(seed * BLOCKS + i) % SIZE_RING];
        blocks[i] = must_malloc(size);
        touch(blocks[i], size);
    }
    for (int i = KEPT; i < BLOCKS; i++) free(blocks[i]);
    pthread_barrier_wait(&all_idle);
    pthread_barrier_wait(&all_over);
    for (int i = 0; i < KEPT; i++) free(blocks[i]);
    return NULL;
}

static void idle_threads(struct span *span, unsigned scale) {
    static pthread_t threads[THREADS];
    uint64_t count = scaled(THREADS, scale);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_barrier_init(&all_idle, NULL, (unsigned)count + 1);
    pthread_barrier_init(&all_over, NULL, (unsigned)count + 1);
    span_begin(span);
    for (uint64_t t = 0; t < count; t++)
        if (pthread_create(&threads[t], &attributes, work_and_wait, (void *)(size_t)t) != 0) die("no thread");
    pthread_barrier_wait(&all_idle);
    span_end(span, count * BLOCKS);
    idle_here();
    pthread_barrier_wait(&all_over);
    for (uint64_t t = 0; t < count; t++) pthread_join(threads[t], NULL);
}

const struct workload idle_workloads[] = {
    {"idle-threads", idle_threads},
    {NULL, NULL},
};
