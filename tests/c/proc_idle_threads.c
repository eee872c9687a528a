/* argv[1] threads each allocate 100 small blocks of many sizes, free argv[2] of them, and sleep;
 * with argv[3] "idle" they say so first (thread.idle). Prints what is resident while all sleep,
 * less what the stacks take. */
#include "proc_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { BLOCKS = 100 };

static pthread_barrier_t full, over;
static int freed;
static bool idle;

static size_t size_of(uint32_t *random) {
    uint32_t one = next_random(random) % 100;
    if (one < 60) return 8 + next_random(random) % 120;
    if (one < 90) return 128 + next_random(random) % 900;
    return 1024 + next_random(random) % 3072;
}

static void *work(void *argument) {
    unsigned char mark = (unsigned char)(uintptr_t)argument;
    uint32_t random = (uint32_t)(uintptr_t)argument * 2654435761u + 1;
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = size_of(&random);
        blocks[i] = marked(sizes[i], mark);
        memset(blocks[i], mark, sizes[i]);
    }
    for (int i = 0; i < freed; i++) check_and_free(blocks[i], sizes[i], mark);
    if (idle) CHECK(mallctl("thread.idle", NULL, NULL, NULL, 0) == 0);
    pthread_barrier_wait(&full);
    pthread_barrier_wait(&over);
    for (int i = freed; i < BLOCKS; i++) check_and_free(blocks[i], sizes[i], mark);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc >= 3);
    unsigned count = (unsigned)atoi(argv[1]);
    freed = atoi(argv[2]);
    idle = argc > 3;
    pthread_t *threads = private_pages(count * sizeof *threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
    pthread_barrier_init(&full, NULL, count + 1);
    pthread_barrier_init(&over, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        CHECK(pthread_create(&threads[i], &attributes, work, (void *)(uintptr_t)(i + 1)) == 0);
    }
    pthread_barrier_wait(&full);
    size_t resident = rss_kib();
    pthread_barrier_wait(&over);
    for (unsigned i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    say("threads=%u rss_kib=%zu\n", count, resident);
    return 0;
}
