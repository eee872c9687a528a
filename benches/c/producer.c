/* A thread hands blocks of one size to two others, which free them, and goes on with other sizes, as a reader of
 * requests does between two large ones. */
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define HANDED 100000
#define HANDED_SIZE 4000
#define CONSUMERS 2
#define HELD 1000
#define LEAST_HELD 100
#define KINDS_HELD 50

static void *handed[HANDED];
static uint64_t handed_count;
static atomic_bool is_over;

static void *free_a_share(void *argument) {
    uint64_t share = (uint64_t)(size_t)argument, end = handed_count * (share + 1) / CONSUMERS;
    for (uint64_t i = handed_count * share / CONSUMERS; i < end; i++) free(handed[i]);
    return NULL;
}

static void go_on(void) {
    void *held[HELD];
    for (size_t i = 0; i < HELD; i++) {
        size_t size = LEAST_HELD + i % KINDS_HELD;
        held[i] = must_malloc(size);
        touch(held[i], size);
    }
    for (size_t i = 0; i < HELD; i++) free(held[i]);
}

static void *go_on_for_long(void *ready) {
    for (uint64_t i = 0; i < handed_count; i++) {
        handed[i] = must_malloc(HANDED_SIZE);
        touch(handed[i], HANDED_SIZE);
    }
    pthread_t consumers[CONSUMERS];
    for (size_t c = 0; c < CONSUMERS; c++)
        if (pthread_create(&consumers[c], NULL, free_a_share, (void *)c) != 0) die("no thread");
    for (size_t c = 0; c < CONSUMERS; c++) pthread_join(consumers[c], NULL);
    pthread_barrier_wait(ready);
    const struct timespec pause = {0, 1000000};
    while (!atomic_load(&is_over)) {
        go_on();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void producer(struct span *span, unsigned scale) {
    pthread_t thread;
    pthread_barrier_t ready;
    handed_count = scaled(HANDED, scale);
    atomic_store(&is_over, false);
    pthread_barrier_init(&ready, NULL, 2);
    span_begin(span);
    if (pthread_create(&thread, NULL, go_on_for_long, &ready) != 0) die("no thread");
    pthread_barrier_wait(&ready);
    span_end(span, handed_count);
    idle_here();
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}

const struct workload producer_workloads[] = {
    {"producer", producer},
    {NULL, NULL},
};
