/* A thread that is to be cancelled allocates under a mutex. POSIX has no point of cancellation in malloc and free, so
 * the thread ends at pthread_testcancel, when it has unlocked the mutex. Then others allocate. Prints how often it
 * allocated. */
#include "proc_common.h"
#include <dirent.h>

#define LARGE 64
#define SMALL 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int is_ready, is_cancelled;
static int allocated;

static void allocate(void) {
    void *large[LARGE];
    for (int i = 0; i < LARGE; i++) {
        large[i] = malloc(1 << 20);
        CHECK(large[i] != NULL);
        memset(large[i], 1, 1 << 20);
        allocated++;
    }
    for (int i = 0; i < SMALL; i++) {
        void *volatile small = malloc(100 + i % 1000);
        CHECK(small != NULL);
        free(small);
        allocated++;
    }
    for (int i = 0; i < LARGE; i++) free(large[i]);
}

static void *cancelled(void *unused) {
    free(malloc(100));
    is_ready = 1;
    while (!is_cancelled) sched_yield();
    pthread_mutex_lock(&lock);
    allocate();
    pthread_mutex_unlock(&lock);
    pthread_testcancel();
    CHECK(!"cancelled");
    return unused;
}

static void *another(void *unused) {
    allocate();
    return unused;
}

static int open_files(void) {
    DIR *files = opendir("/proc/self/fd");
    CHECK(files != NULL);
    int count = 0;
    while (readdir(files) != NULL) count++;
    closedir(files);
    return count;
}

int main(void) {
    pthread_t thread;
    void *result;
    const int before = open_files();
    CHECK(pthread_create(&thread, NULL, cancelled, NULL) == 0);
    while (!is_ready) sched_yield();
    CHECK(pthread_cancel(thread) == 0);
    is_cancelled = 1;
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(allocated == LARGE + SMALL);
    CHECK(pthread_mutex_trylock(&lock) == 0);
    CHECK(open_files() == before);
    CHECK(pthread_create(&thread, NULL, another, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    allocate();
    say("allocated=%d\n", allocated);
    return 0;
}
