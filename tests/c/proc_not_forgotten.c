/* What has come back is given back although the thread that saw it could not have that done: argv[1]
 * is "exit" for threads that end with full caches, or "vfork" for a child that shares this memory.
 * Afterwards this thread allocates nothing, or one block. */
#include "proc_common.h"

enum { THREADS = 21, BLOCKS = 4000, SIZE = 16 << 10, MUCH_KIB = 12 << 10 };

static pthread_barrier_t ready, full, over;
static size_t full_kib;

static void *sleeper(void *unused) {
    free(marked(100, 1));
    pthread_barrier_wait(&ready);
    for (;;) pause();
    return unused;
}

/* A cache may hold the more the more its thread does. */
static void *fill_cache(void *unused) {
    static const size_t sizes[] = {100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600};
    enum { ROUNDS = 300, COUNT = sizeof sizes / sizeof *sizes, MOST = 64 };
    for (size_t round = 0; round < ROUNDS; round++) {
        void *blocks[COUNT][MOST];
        for (size_t i = 0; i < COUNT * MOST; i++) {
            size_t size = sizes[i / MOST];
            if (i % MOST * size < 200 << 10) blocks[i / MOST][i % MOST] = memset(marked(size, 2), 2, size);
        }
        for (size_t i = 0; i < COUNT * MOST; i++) {
            size_t size = sizes[i / MOST];
            if (i % MOST * size < 200 << 10) check_and_free(blocks[i / MOST][i % MOST], size, 2);
        }
    }
    pthread_barrier_wait(&full);
    pthread_barrier_wait(&over);
    return unused;
}

static void end_with_full_caches(const pthread_attr_t *detached) {
    pthread_barrier_init(&full, NULL, THREADS + 1);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    pthread_t thread;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&thread, detached, fill_cache, NULL) == 0);
    pthread_barrier_wait(&full);
}

static void shorten_decay(void) {
    ssize_t millis = 200;
    unsigned count = 0;
    size_t length = sizeof count;
    CHECK(mallctl("arenas.narenas", &count, &length, NULL, 0) == 0 && count > 0);
    for (unsigned i = 0; i < count; i++) {
        char name[50];
        snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", i);
        CHECK(mallctl(name, NULL, NULL, &millis, sizeof millis) == 0 || i > 0);
    }
}

static void free_in_a_vfork(void) {
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = memset(marked(SIZE, 3), 3, SIZE);
    full_kib = rss_kib();
    pid_t child = vfork();
    if (child == 0) {
        for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
    CHECK(malloc(100 << 10) != NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_barrier_init(&ready, NULL, 2);
    CHECK(pthread_create(&thread, &detached, sleeper, NULL) == 0);
    pthread_barrier_wait(&ready);
    if (strcmp(argv[1], "exit") == 0) {
        end_with_full_caches(&detached);
        /* Up to here no cache was emptied because its thread waits. */
        shorten_decay();
        /* That has purged what was unused. */
        full_kib = rss_kib();
        pthread_barrier_wait(&over);
    } else {
        free_in_a_vfork();
    }
    for (int i = 0; rss_kib() + MUCH_KIB > full_kib; i++) {
        CHECK(i < 6000);
        sleep_ms(50);
    }
    say("given back\n");
    return 0;
}
