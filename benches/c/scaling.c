/* Work for THREADS threads, and what the allocator counted meanwhile: `lumalloc-bench-scaling
 * WORKLOAD THREADS`. Not timed. The work is the same in every run, a million allocations or so however
 * many the threads; they meet at barriers, so that it does not depend on who runs when.
 *   own:      every thread replaces random blocks of its own, 16 bytes to 8 KiB;
 *   pass:     every thread allocates batches of 16 to 1023 bytes, all freed by its neighbour;
 *   buffers:  the same of 16 to 32 KiB, as asynchronous servers do;
 *   dying:    own, but the threads die and their successors free what they left (larson's idea).
 * Prints `operations N`, `threads N` and a line `stats.work.NAME COUNT` for every name on its input. */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 64
#define LIVE 1000
#define BATCH 64

int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size) __attribute__((weak));

uint16_t size_ring[SIZE_RING];
static int thread_count;
static uint64_t steps;      /* of every thread, in all its lives */
static void *slots[MOST_THREADS][LIVE];
static void *batches[2][MOST_THREADS][BATCH];
static pthread_barrier_t meeting;
static uint64_t states[MOST_THREADS];

_Noreturn void die(const char *what) {
    fprintf(stderr, "lumalloc-bench-scaling: %s\n", what);
    exit(1);
}

static void *made(size_t size) {
    char *block = malloc(size);
    if (block == NULL) die("out of memory");
    for (size_t at = 0; at < size; at += 4096) block[at] = 1;
    return block;
}

static size_t mixed(uint64_t random) {
    return size_ring[(random >> 20) % SIZE_RING];
}

static void *replace(void *argument) {
    size_t self = (size_t)argument;
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t random = next_random(&states[self]);
        void **slot = &slots[self][(random >> 32) % LIVE];
        free(*slot);
        *slot = made(mixed(random) << (random % 16 == 0 ? 3 : 0));
    }
    return NULL;
}

static void *pass_on(void *argument, size_t (*size)(uint64_t)) {
    size_t self = (size_t)argument, neighbour = (self + 1) % (size_t)thread_count;
    for (uint64_t p = 0; p < steps / BATCH; p++) {
        void **batch = batches[p % 2][self];
        for (int i = 0; i < BATCH; i++) batch[i] = made(size(next_random(&states[self])));
        pthread_barrier_wait(&meeting);
        for (int i = 0; i < BATCH; i++) free(batches[p % 2][neighbour][i]);
    }
    return NULL;
}

static size_t buffer(uint64_t random) {
    return (16u << 10) + (random >> 32) % (16u << 10);
}

static void *pass(void *argument) {
    return pass_on(argument, mixed);
}

static void *pass_buffers(void *argument) {
    return pass_on(argument, buffer);
}

static void *(*work_of_all)(void *);

/* All threads live while any works, so that none takes over what another has left. */
static void *live(void *argument) {
    pthread_barrier_wait(&meeting);
    work_of_all(argument);
    pthread_barrier_wait(&meeting);
    return NULL;
}

static void all(void *(*work)(void *), int shift) {
    pthread_t threads[MOST_THREADS];
    work_of_all = work;
    for (int t = 0; t < thread_count; t++) {
        void *self = (void *)(size_t)((t + shift) % thread_count);
        if (pthread_create(&threads[t], NULL, live, self) != 0) die("no thread");
    }
    for (int t = 0; t < thread_count; t++) pthread_join(threads[t], NULL);
}

static void run(const char *name, uint64_t operations) {
    enum { LIVES = 8 };
    int is_dying = strcmp(name, "dying") == 0;
    steps = operations / (uint64_t)thread_count / (is_dying ? LIVES : 1);
    if (is_dying)
        for (int life = 0; life < LIVES; life++) all(replace, life);
    else if (strcmp(name, "own") == 0)
        all(replace, 0);
    else if (strcmp(name, "pass") == 0)
        all(pass, 0);
    else if (strcmp(name, "buffers") == 0)
        all(pass_buffers, 0);
    else
        die("no such workload");
}

static uint64_t counted(const char *name) {
    uint64_t epoch = 1, value = 0;
    size_t size = sizeof value;
    if (mallctl == NULL || mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0) die("no mallctl");
    if (mallctl(name, &value, &size, NULL, 0) != 0) die(name);
    return value;
}

int main(int argc, char **argv) {
    enum { MOST_NAMES = 64 };
    static char names[MOST_NAMES][64];
    static uint64_t before[MOST_NAMES];
    int count = 0;
    if (argc != 3) die("usage: lumalloc-bench-scaling WORKLOAD THREADS <NAMES");
    thread_count = atoi(argv[2]);
    if (thread_count < 1 || thread_count > MOST_THREADS) die("1 to 64 threads");
    while (count < MOST_NAMES && scanf("%63s", names[count]) == 1) count++;
    uint64_t state = 0x9e3779b97f4a7c15u, operations = strcmp(argv[1], "buffers") == 0 ? 200000 : 1000000;
    for (size_t i = 0; i < SIZE_RING; i++) {
        uint64_t octave = 16u << (next_random(&state) >> 32) % 6;
        size_ring[i] = (uint16_t)(octave + (next_random(&state) >> 32) % octave);
    }
    for (size_t t = 0; t < MOST_THREADS; t++) states[t] = 88172645463325252u + t;
    pthread_barrier_init(&meeting, NULL, (unsigned)thread_count);
    for (int i = 0; i < count; i++) before[i] = counted(names[i]);
    run(argv[1], operations);
    printf("operations %llu\n", (unsigned long long)operations);
    for (int i = 0; i < count; i++) {
        uint64_t after = counted(names[i]);
        printf("%s %llu\n", names[i], (unsigned long long)(after - before[i]));
    }
    return 0;
}
