/* The main thread writes behind a block that it never frees, and sleeps until another thread has emptied its cache.
 * Then that thread ends, and the process exits without another call of the allocator. */
#include <pthread.h>
#include <time.h>

#include "death_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { BLOCKS = 400 };

static uint64_t emptied(void) {
    uint64_t count, epoch = 1;
    size_t length = sizeof count;
    if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0) _exit(8);
    if (mallctl("stats.work.caches_emptied", &count, &length, NULL, 0) != 0) _exit(8);
    return count;
}

static void *other(void *unused) {
    const struct timespec pause = {0, 5000000};
    while (emptied() == 0) {
        /* Blocks of this size have no bin, so each takes a slow path, where a pass may be made. */
        free(opaque(malloc(100000)));
        nanosleep(&pause, NULL);
    }
    return unused;
}

int main(int argc, char **argv) {
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = opaque(malloc(size));
    for (int i = 1; i < BLOCKS; i++) free(blocks[i]);
    ((char *)opaque(blocks[0]))[size] = 'x';
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL) != 0 || pthread_join(thread, NULL) != 0) return 9;
    return 0;
}
