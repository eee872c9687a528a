/* One program for every C workload: `lumalloc-bench-c WORKLOAD SCALE [IDLE]`. The allocator
 * comes by LD_PRELOAD; the first line printed says from which object `malloc` really came. With IDLE,
 * a number of seconds, the process sleeps after its work and tells its RSS before and after. */
#define _GNU_SOURCE
#include "harness.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint16_t size_ring[SIZE_RING];

static const struct workload *const tables[] = {
    pair_workloads, batch_workloads, random_workloads, grow_workloads, thread_workloads, succession_workloads,
    class_workloads, transfer_workloads, sharing_workloads, idle_workloads, producer_workloads, large_workloads,
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

void shuffle(uint32_t *order, uint32_t count) {
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < count; i++) order[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t j = (uint32_t)((next_random(&state) >> 32) % (i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

void touch(void *block, size_t size) {
    memset(block, (int)size, size < 16 ? size : 16);
    for (size_t at = 4096; at < size; at += 4096) ((volatile char *)block)[at] = (char)at;
}

/* Without a call that might allocate. */
static long resident_kib(void) {
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (length <= 0) die("no /proc/self/status");
    close(file);
    text[length] = 0;
    const char *line = strstr(text, "VmRSS:");
    if (line == NULL) die("/proc/self/status has no VmRSS");
    return atol(line + strlen("VmRSS:"));
}

static unsigned idle_seconds;
static int has_idled;
static long rss_before, rss_after;

void idle_here(void) {
    if (idle_seconds == 0 || has_idled) return;
    has_idled = 1;
    puts("idling");
    fflush(stdout);
    rss_before = resident_kib();
    struct timespec rest = {(time_t)idle_seconds, 0};
    while (nanosleep(&rest, &rest) != 0)
        ;
    rss_after = resident_kib();
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
    if (argc != 3 && argc != 4) die("usage: lumalloc-bench-c WORKLOAD SCALE [IDLE]");
    const struct workload *workload = find(argv[1]);
    int scale = atoi(argv[2]);
    if (workload == NULL) die("no such workload");
    if (scale < 1 || scale > 100) die("the scale is a percentage, 1 to 100");
    if (argc == 4) idle_seconds = (unsigned)atoi(argv[3]);
    print_origin();
    fill_size_ring();
    struct span span = {0, 0};
    workload->run(&span, (unsigned)scale);
    idle_here();
    if (has_idled) printf("idle %ld %ld\n", rss_before, rss_after);
    printf("result %llu %llu\n", (unsigned long long)span.operations, (unsigned long long)span.wall_ns);
    return 0;
}
