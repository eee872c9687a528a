/* Threads whose first call of the allocator comes in a later round of the destructors of keys, so that
 * the allocator's own destructor is called too seldom or never, and threads that end by the system call
 * alone. Their stacks are larger than what the C library keeps, so they are unmapped when a thread is
 * joined. Prints how many threads with a cache the library knows then, and how much its records grew. */
#include "proc_common.h"

#include <sys/syscall.h>

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { ROUNDS = 4 /* PTHREAD_DESTRUCTOR_ITERATIONS */, THREADS = 500, STACK = 64 << 20 };

static pthread_key_t key;
static _Thread_local unsigned round_of_thread;
static atomic_uint ended;

static void destroy(void *wanted) {
    round_of_thread++;
    if (round_of_thread < (uintptr_t)wanted) {
        CHECK(pthread_setspecific(key, wanted) == 0);
        return;
    }
    for (size_t size = 8; size < 40000; size *= 2) check_and_free(marked(size, 1), size, 1);
    atomic_fetch_add(&ended, 1);
}

/* The round of the first call; 0: at once, and the thread ends without destructors. */
static void *work(void *wanted) {
    if (wanted != NULL) {
        CHECK(pthread_setspecific(key, wanted) == 0);
        return NULL;
    }
    for (size_t size = 8; size < 40000; size *= 2) check_and_free(marked(size, 1), size, 1);
    atomic_fetch_add(&ended, 1);
    syscall(SYS_exit, 0);
    return NULL;
}

static void run(uintptr_t wanted) {
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, STACK) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, work, (void *)wanted) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
}

static size_t metadata(void) {
    uint64_t epoch = 1;
    size_t bytes, size = sizeof bytes;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    CHECK(mallctl("stats.metadata", &bytes, &size, NULL, 0) == 0);
    return bytes;
}

int main(void) {
    CHECK(pthread_key_create(&key, destroy) == 0);
    for (uintptr_t wanted = 0; wanted <= ROUNDS; wanted++) {
        for (int i = 0; i < 10; i++) run(wanted);
        size_t before = metadata();
        for (int i = 0; i < THREADS; i++) run(wanted);
        size_t grown = (metadata() - before) >> 10;
        unsigned alive;
        size_t size = sizeof alive;
        CHECK(mallctl("stats.arenas.4096.nthreads", &alive, &size, NULL, 0) == 0);
        say("round=%u alive=%u grown_kib=%zu\n", (unsigned)wanted, alive, grown);
    }
    CHECK(atomic_load(&ended) == (ROUNDS + 1) * (THREADS + 10));
    return 0;
}
