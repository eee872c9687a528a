/* Frees and allocations in the destructors of pthread keys, in several rounds and for keys made
 * before and after the allocator's own: the thread's cache is gone by then, or comes again. */
#include "proc_common.h"

enum { KEYS = 8, ROUNDS = 4 /* PTHREAD_DESTRUCTOR_ITERATIONS */, THREADS = 400 };

static pthread_key_t keys[KEYS];
static atomic_uint destroyed;

struct block {
    unsigned round;
    int key;
    unsigned char *payload;
};

static void set(int key, unsigned round) {
    struct block *block = malloc(sizeof *block);
    CHECK(block != NULL);
    *block = (struct block){round, key, marked(500 + (size_t)round * 1000, (unsigned char)key)};
    CHECK(pthread_setspecific(keys[key], block) == 0);
}

static void destroy(void *argument) {
    struct block *block = argument;
    unsigned round = block->round;
    int key = block->key;
    check_and_free(block->payload, 500 + (size_t)round * 1000, (unsigned char)key);
    free(block);
    for (size_t size = 8; size < 40000; size *= 2) check_and_free(marked(size, 1), size, 1);
    atomic_fetch_add(&destroyed, 1);
    if (round + 1 < ROUNDS) set(key, round + 1);
}

static void *work(void *argument) {
    for (int key = 0; key < KEYS; key++) set(key, 0);
    return argument;
}

int main(void) {
    for (int key = 0; key < KEYS; key++) CHECK(pthread_key_create(&keys[key], destroy) == 0);
    size_t early = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        if (i == THREADS / 10) early = rss_kib();
    }
    CHECK(atomic_load(&destroyed) == THREADS * KEYS * ROUNDS);
    say("destroyed=%u early_kib=%zu late_kib=%zu\n", atomic_load(&destroyed), early, rss_kib());
    return 0;
}
