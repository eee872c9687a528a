/* Growth by realloc: a string by a few bytes at a time, a vector by doubling. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *grown(char *block, size_t size) {
    char *moved = realloc(block, size);
    if (moved == NULL) die("out of memory");
    return moved;
}

/* 24 bytes at a time to 16 KiB. */
static void grow_bytes(struct span *span, unsigned scale) {
    enum { STEP = 24, END = 16384 };
    uint64_t strings = scaled(25000, scale), operations = 0;
    span_begin(span);
    for (uint64_t i = 0; i < strings; i++) {
        char *text = NULL;
        for (size_t size = STEP; size <= END; size += STEP) {
            text = grown(text, size);
            memset(text + size - STEP, 'x', STEP);
            operations++;
        }
        free(text);
    }
    span_end(span, operations);
}

/* 64 strings in turn, each by 24 bytes to 2 KiB: nobody has free space behind it for long. */
static void grow_many(struct span *span, unsigned scale) {
    enum { STRINGS = 64, STEP = 24, END = 2048 };
    char *texts[STRINGS] = {NULL};
    uint64_t rounds = scaled(3500, scale), operations = 0;
    span_begin(span);
    for (uint64_t i = 0; i < rounds; i++) {
        for (size_t size = STEP; size <= END; size += STEP)
            for (int s = 0; s < STRINGS; s++) {
                texts[s] = grown(texts[s], size);
                memset(texts[s] + size - STEP, 'x', STEP);
                operations++;
            }
        for (int s = 0; s < STRINGS; s++) {
            free(texts[s]);
            texts[s] = NULL;
        }
    }
    span_end(span, operations);
}

/* Doubled from 64 bytes; the new half of it is touched once per page. */
static void doubled(struct span *span, uint64_t vectors, size_t end) {
    const size_t begin = 64, page = 4096;
    uint64_t operations = 0;
    span_begin(span);
    for (uint64_t i = 0; i < vectors; i++) {
        char *vector = NULL;
        for (size_t size = begin; size <= end; size *= 2) {
            vector = grown(vector, size);
            for (size_t at = size / 2; at < size; at += page) vector[at] = (char)at;
            operations++;
        }
        free(vector);
    }
    span_end(span, operations);
}

static void grow_double(struct span *span, unsigned scale) {
    doubled(span, scaled(20, scale), 64u << 20);
}

static void grow_huge(struct span *span, unsigned scale) {
    doubled(span, scaled(1, scale), (size_t)1 << 30);
}

static uint64_t vectors_each;

/* By a half at a time from 64 bytes to 16 MiB; all that is new is written. */
static void *by_halves(void *operations) {
    const size_t begin = 64, end = 16u << 20;
    uint64_t done = 0;
    for (uint64_t i = 0; i < vectors_each; i++) {
        char *vector = NULL;
        for (size_t old = 0, size = begin; size <= end; old = size, size += size / 2 + 7) {
            vector = grown(vector, size);
            memset(vector + old, (int)i, size - old);
            done++;
        }
        free(vector);
    }
    *(uint64_t *)operations = done;
    return NULL;
}

static void grow_4(struct span *span, unsigned scale) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uint64_t done[THREADS], operations = 0;
    vectors_each = scaled(40, scale);
    span_begin(span);
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, by_halves, &done[t]) != 0) die("no thread");
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        operations += done[t];
    }
    span_end(span, operations);
}

const struct workload grow_workloads[] = {
    {"grow-bytes", grow_bytes},
    {"grow-many", grow_many},
    {"grow-double", grow_double},
    {"grow-huge", grow_huge},
    {"grow-4", grow_4},
    {NULL, NULL},
};
