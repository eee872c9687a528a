/* A producer and a consumer thread, or eight of each.
 *   exchange: both run at once, batches of 4096 go through a locked queue (xmalloc-test's shape; the
 *             batches themselves are recycled, so that only the blocks are measured);
 *   handover: they take turns: one allocates 100 000 blocks, the other frees them, in order or shuffled. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 4096
#define IN_FLIGHT 64
#define MOST_SIDES 8

struct batch {
    struct batch *next;
    void *blocks[BATCH];
};

/* A stack of batches under a lock; `full` and `empty` between them hold all IN_FLIGHT of them. */
struct shelf {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct batch *first, *last;
};

static struct batch batches[IN_FLIGHT];
static struct shelf full = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL};
static struct shelf empty = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL};
static uint64_t batch_count;
static size_t fixed_size; /* 0: from the ring */

static void put(struct shelf *shelf, struct batch *batch) {
    batch->next = NULL;
    pthread_mutex_lock(&shelf->lock);
    if (shelf->first == NULL)
        shelf->first = batch;
    else
        shelf->last->next = batch;
    shelf->last = batch;
    pthread_cond_signal(&shelf->filled);
    pthread_mutex_unlock(&shelf->lock);
}

static struct batch *take(struct shelf *shelf) {
    pthread_mutex_lock(&shelf->lock);
    while (shelf->first == NULL) pthread_cond_wait(&shelf->filled, &shelf->lock);
    struct batch *batch = shelf->first;
    shelf->first = batch->next;
    pthread_mutex_unlock(&shelf->lock);
    return batch;
}

static void *fresh(uint64_t i) {
    size_t size = fixed_size != 0 ? fixed_size : size_ring[i % SIZE_RING];
    void *block = must_malloc(size);
    memset(block, (int)i, 16); /* its first line is written; no block is smaller */
    return block;
}

static void *consume(void *unused) {
    (void)unused;
    for (uint64_t b = 0; b < batch_count; b++) {
        struct batch *batch = take(&full);
        for (int i = 0; i < BATCH; i++) free(batch->blocks[i]);
        put(&empty, batch);
    }
    return NULL;
}

static void *produce(void *unused) {
    for (uint64_t b = 0; b < batch_count; b++) {
        struct batch *batch = take(&empty);
        for (int i = 0; i < BATCH; i++) batch->blocks[i] = fresh(b * BATCH + (uint64_t)i);
        put(&full, batch);
    }
    return unused;
}

/* `count` batches each, from as many producers to as many consumers; this thread is a producer. */
static void exchange(struct span *span, uint64_t count, size_t size, int sides) {
    pthread_t consumers[MOST_SIDES], producers[MOST_SIDES];
    batch_count = count;
    fixed_size = size;
    for (int i = 0; i < IN_FLIGHT; i++) put(&empty, &batches[i]);
    span_begin(span);
    for (int s = 0; s < sides; s++)
        if (pthread_create(&consumers[s], NULL, consume, NULL) != 0) die("no thread");
    for (int s = 1; s < sides; s++)
        if (pthread_create(&producers[s], NULL, produce, NULL) != 0) die("no thread");
    produce(NULL);
    for (int s = 1; s < sides; s++) pthread_join(producers[s], NULL);
    for (int s = 0; s < sides; s++) pthread_join(consumers[s], NULL);
    span_end(span, count * (uint64_t)sides * BATCH);
}

static void exchange_64(struct span *span, unsigned scale) {
    exchange(span, scaled(4000, scale), 64, 1);
}

static void exchange_mixed(struct span *span, unsigned scale) {
    exchange(span, scaled(2000, scale), 0, 1);
}

/* Eight producers and eight consumers. */
static void exchange_16(struct span *span, unsigned scale) {
    exchange(span, scaled(250, scale), 0, 8);
}

#define HANDED 100000
static void *handed[HANDED];
static uint32_t order[HANDED];
static uint64_t turns;
static pthread_barrier_t turn;

static void *free_in_turn(void *unused) {
    (void)unused;
    for (uint64_t t = 0; t < turns; t++) {
        pthread_barrier_wait(&turn);
        for (int i = 0; i < HANDED; i++) free(handed[order[i]]);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

static void lay_out_order(int shuffled) {
    if (shuffled) shuffle(order, HANDED);
    for (uint32_t i = 0; i < HANDED && !shuffled; i++) order[i] = i;
}

static void handover(struct span *span, uint64_t count, size_t size, int shuffled) {
    pthread_t other;
    turns = count;
    fixed_size = size;
    lay_out_order(shuffled);
    pthread_barrier_init(&turn, NULL, 2);
    span_begin(span);
    if (pthread_create(&other, NULL, free_in_turn, NULL) != 0) die("no thread");
    for (uint64_t t = 0; t < count; t++) {
        for (int i = 0; i < HANDED; i++) handed[i] = fresh((uint64_t)i);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    pthread_join(other, NULL);
    span_end(span, count * HANDED);
}

static void handover_64(struct span *span, unsigned scale) {
    handover(span, scaled(150, scale), 64, 0);
}

static void handover_shuffled(struct span *span, unsigned scale) {
    handover(span, scaled(100, scale), 64, 1);
}

static void handover_mixed(struct span *span, unsigned scale) {
    handover(span, scaled(60, scale), 0, 0);
}

const struct workload thread_workloads[] = {
    {"exchange-64", exchange_64},
    {"exchange-mixed", exchange_mixed},
    {"exchange-16", exchange_16},
    {"handover-64", handover_64},
    {"handover-shuffled", handover_shuffled},
    {"handover-mixed", handover_mixed},
    {NULL, NULL},
};
