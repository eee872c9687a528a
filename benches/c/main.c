/* One program for every C workload: `lumalloc-bench-c WORKLOAD SCALE`. The allocator comes by
 * LD_PRELOAD; the first line printed says from which object `malloc` really came. */
#define _GNU_SOURCE
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint16_t size_ring[SIZE_RING];

static const struct workload *const tables[] = {
    pair_workloads, batch_workloads, random_workloads, grow_workloads, thread_workloads, succession_workloads,
};

_Noreturn void die(const char *what) {
    fprintf(stderr, "lumalloc-bench-c: %s\n", what);
    exit(1);
}

void *must_malloc(size_t size) {
    void *block = malloc(size);
    if (block == NULL) die("out of memory");
    return block;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void span_begin(struct span *span) {
    span->wall_ns = now_ns();
}

void span_end(struct span *span, uint64_t operations) {
    span->wall_ns = now_ns() - span->wall_ns;
    span->operations = operations;
}

static void fill_size_ring(void) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < SIZE_RING; i++) {
        uint64_t octave = 16u << (next_random(&state) >> 32) % 6;
        size_ring[i] = (uint16_t)(octave + (next_random(&state) >> 32) % octave);
    }
}

static const struct workload *find(const char *name) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct workload *w = tables[t]; w->name != NULL; w++)
            if (strcmp(w->name, name) == 0) return w;
    return NULL;
}

static void print_origin(void) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    if (address == NULL || dladdr(address, &info) == 0) die("nobody defines malloc");
    const char *slash = strrchr(info.dli_fname, '/');
    printf("origin %s\n", slash == NULL ? info.dli_fname : slash + 1);
}

int main(int argc, char **argv) {
    if (argc != 3) die("usage: lumalloc-bench-c WORKLOAD SCALE");
    const struct workload *workload = find(argv[1]);
    int scale = atoi(argv[2]);
    if (workload == NULL) die("no such workload");
    if (scale < 1 || scale > 100) die("the scale is a percentage, 1 to 100");
    print_origin();
    fill_size_ring();
    struct span span = {0, 0};
    workload->run(&span, (unsigned)scale);
    printf("result %llu %llu\n", (unsigned long long)span.operations, (unsigned long long)span.wall_ns);
    return 0;
}
