/* One thread only allocates, the other only frees: argv[1] MiB in blocks of 64 to 4096 bytes pass
 * through a ring. Prints the peak of resident memory: it must not grow with what passed. */
#include "proc_common.h"

enum { RING = 4096 };

static unsigned char *ring[RING];
static atomic_size_t head, tail;
static size_t count;

static size_t size_of(size_t index) { return (size_t)64 << (index % 7); }

static void *consume(void *argument) {
    for (size_t index = 0; index < count; index++) {
        while (atomic_load(&head) == index) sched_yield();
        check_and_free(ring[index % RING], size_of(index), (unsigned char)index);
        atomic_store(&tail, index + 1);
    }
    return argument;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    count = (size_t)atoi(argv[1]) * (1 << 20) / ((64 * 127) / 7);
    pthread_t consumer;
    CHECK(pthread_create(&consumer, NULL, consume, NULL) == 0);
    for (size_t index = 0; index < count; index++) {
        while (index - atomic_load(&tail) == RING) sched_yield();
        ring[index % RING] = marked(size_of(index), (unsigned char)index);
        atomic_store(&head, index + 1);
    }
    CHECK(pthread_join(consumer, NULL) == 0);
    say("blocks=%zu peak_kib=%zu\n", count, peak_rss_kib());
    return 0;
}
