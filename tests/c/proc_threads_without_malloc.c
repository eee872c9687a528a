/* Threads that never allocate. When one ends, the C library may free what it has kept of others,
 * after the thread's destructors have run. Prints how many threads have a cache then. */
#include "proc_common.h"

#include <sched.h>

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);
__attribute__((weak)) void malloc_stats_print(void (*)(void *, const char *), void *, const char *);

/* Together the stacks are longer than what the C library keeps. */
enum { THREADS = 64, ROUNDS = 2, STACK = 8 << 20 };

static pthread_barrier_t all;

static void *wait_for_all(void *unused) {
    (void)unused;
    pthread_barrier_wait(&all);
    return NULL;
}

int main(void) {
    size_t length = sizeof(unsigned);
    unsigned before = 0, after = 0;
    CHECK(mallctl("stats.arenas.0.nthreads", &before, &length, NULL, 0) == 0);
    pthread_attr_t large;
    CHECK(pthread_attr_init(&large) == 0 && pthread_attr_setstacksize(&large, STACK) == 0);
    CHECK(pthread_attr_setdetachstate(&large, PTHREAD_CREATE_DETACHED) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        pthread_barrier_init(&all, NULL, THREADS + 1);
        for (int n = 0; n < THREADS; n++)
            CHECK(pthread_create(&thread, &large, wait_for_all, NULL) == 0);
        pthread_barrier_wait(&all);
        while (kib_of("/proc/self/status", "\nThreads:") > 1) sched_yield();
    }
    uint64_t epoch = 1;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    CHECK(mallctl("stats.arenas.0.nthreads", &after, &length, NULL, 0) == 0);
    malloc_stats_print(NULL, NULL, NULL);
    say("more=%d\n", (int)(after - before));
    return 0;
}
