/* A producer allocates argv[1] MiB, hands all of it to a consumer and sleeps until the end; the
 * consumer frees it and sleeps too; a third thread allocates a little now and then. After two decay
 * times (argv[2] ms each) the memory must be back with the system. Prints what is resident when
 * all is allocated and at the end. */
#include "proc_common.h"

static pthread_barrier_t produced, consumed, over;
static unsigned char **blocks;
static size_t count;
static atomic_bool stop;
static atomic_size_t rounds;

static size_t size_of(size_t index) {
    static const size_t sizes[] = {64, 200, 500, 1000, 4000, 9000, 30000};
    return sizes[index % 7];
}

static void *produce(void *argument) {
    for (size_t i = 0; i < count; i++) {
        blocks[i] = marked(size_of(i), (unsigned char)i);
        memset(blocks[i], (int)(i & 255), size_of(i));
    }
    pthread_barrier_wait(&produced);
    pthread_barrier_wait(&over);
    return argument;
}

static void *consume(void *argument) {
    pthread_barrier_wait(&produced);
    for (size_t i = 0; i < count; i++) check_and_free(blocks[i], size_of(i), (unsigned char)i);
    pthread_barrier_wait(&consumed);
    pthread_barrier_wait(&over);
    return argument;
}

static void *allocate_a_little(void *argument) {
    uint32_t state = 1;
    while (!atomic_load(&stop)) {
        unsigned char *few[64];
        size_t sizes[64];
        for (int i = 0; i < 64; i++) {
            sizes[i] = 16 + next_random(&state) % 3000;
            few[i] = marked(sizes[i], 9);
        }
        for (int i = 0; i < 64; i++) check_and_free(few[i], sizes[i], 9);
        atomic_fetch_add(&rounds, 1);
        sleep_ms(5);
    }
    return argument;
}

static pthread_t start(void *(*body)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
    return thread;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    unsigned decay_ms = (unsigned)atoi(argv[2]);
    count = (size_t)atoi(argv[1]) * (1 << 20) / (44764 / 7);
    blocks = private_pages(count * sizeof *blocks);
    pthread_barrier_init(&produced, NULL, 3);
    pthread_barrier_init(&consumed, NULL, 2);
    pthread_barrier_init(&over, NULL, 3);
    pthread_t producer = start(produce), consumer = start(consume);
    pthread_barrier_wait(&produced);
    size_t full = rss_kib();
    pthread_t third = start(allocate_a_little);
    pthread_barrier_wait(&consumed);
    sleep_ms(2 * decay_ms);
    /* On a busy machine the third thread may have starved: let it have its turns. */
    size_t seen = atomic_load(&rounds);
    while (atomic_load(&rounds) < seen + 10) sleep_ms(5);
    size_t end = rss_kib();
    pthread_barrier_wait(&over);
    atomic_store(&stop, true);
    CHECK(pthread_join(producer, NULL) == 0 && pthread_join(consumer, NULL) == 0);
    CHECK(pthread_join(third, NULL) == 0);
    say("full_kib=%zu end_kib=%zu\n", full, end);
    return 0;
}
