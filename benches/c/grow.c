/* Growth by realloc: a string by a few bytes at a time, a vector by doubling. */
#include "harness.h"

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

const struct workload grow_workloads[] = {
    {"grow-bytes", grow_bytes},
    {"grow-many", grow_many},
    {"grow-double", grow_double},
    {"grow-huge", grow_huge},
    {NULL, NULL},
};
