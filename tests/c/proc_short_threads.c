/* Short-lived threads: argv[1] of them, at most 16 at a time, each hands a block to the next.
 * Prints the resident memory after a tenth of them and at the end: what a thread leaves behind
 * must not add up. */
#include "proc_common.h"

enum { TOGETHER = 16, BLOCKS = 200 };

static _Atomic(unsigned char *) handed;
static atomic_uint finished;

static size_t size_of(uint32_t random) {
    return random % 64 == 0 ? 20000 + random % 30000 : 8 + random % 2000;
}

static void *work(void *argument) {
    uint32_t state = (uint32_t)(uintptr_t)argument * 2654435761u | 1;
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = size_of(next_random(&state));
        blocks[i] = marked(sizes[i], (unsigned char)i);
    }
    unsigned char *mine = marked(100, 0xA5);
    unsigned char *other = atomic_exchange(&handed, mine);
    if (other != NULL) check_and_free(other, 100, 0xA5);
    for (int i = 0; i < BLOCKS; i++) check_and_free(blocks[i], sizes[i], (unsigned char)i);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void run(unsigned from, unsigned to) {
    pthread_t threads[TOGETHER];
    for (unsigned i = from; i < to; i += TOGETHER) {
        for (unsigned j = 0; j < TOGETHER; j++) {
            void *argument = (void *)(uintptr_t)(i + j + 1);
            CHECK(pthread_create(&threads[j], NULL, work, argument) == 0);
        }
        for (unsigned j = 0; j < TOGETHER; j++) CHECK(pthread_join(threads[j], NULL) == 0);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    unsigned count = (unsigned)atoi(argv[1]) / TOGETHER * TOGETHER;
    unsigned tenth = count / 10 / TOGETHER * TOGETHER;
    run(0, tenth);
    size_t early = rss_kib();
    run(tenth, count);
    CHECK(atomic_load(&finished) == count);
    say("threads=%u early_kib=%zu late_kib=%zu\n", count, early, rss_kib());
    return 0;
}
