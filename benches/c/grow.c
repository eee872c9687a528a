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
    uint64_t strings = scaled(15000, scale), operations = 0;
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

/* 64 bytes doubled to 64 MiB; the new half of it is touched once per page. */
static void grow_double(struct span *span, unsigned scale) {
    const size_t begin = 64, end = 64u << 20, page = 4096;
    uint64_t vectors = scaled(20, scale), operations = 0;
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

const struct workload grow_workloads[] = {
    {"grow-bytes", grow_bytes},
    {"grow-double", grow_double},
    {NULL, NULL},
};
