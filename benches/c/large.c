/* Large blocks.
 *   large:   5 to 25 MiB, 20 live, random lives, every byte written;
 *   extents: 32 KiB to 2 MiB, 100 live, random lives, every page written to;
 *   buffers: an asynchronous server's: 16 to 32 KiB filled by one thread, freed by another. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void large(struct span *span, unsigned scale) {
    enum { LIVE = 20 };
    void *slots[LIVE] = {NULL};
    uint64_t count = scaled(120, scale), state = 88172645463325252u;
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (next_random(&state) >> 32) % LIVE;
        size_t size = (5u << 20) + (state >> 20) % (20u << 20);
        free(slots[at]);
        slots[at] = must_malloc(size);
        memset(slots[at], (int)i, size);
    }
    span_end(span, count);
    for (int i = 0; i < LIVE; i++) free(slots[i]);
}

static void extents(struct span *span, unsigned scale) {
    enum { LIVE = 100 };
    void *slots[LIVE] = {NULL};
    uint64_t count = scaled(80000, scale), state = 88172645463325252u;
    span_begin(span);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = (next_random(&state) >> 32) % LIVE;
        size_t octave = (size_t)(32u << 10) << (state >> 20) % 6, size = octave + (state >> 40) % octave;
        free(slots[at]);
        slots[at] = must_malloc(size);
        touch(slots[at], size);
    }
    span_end(span, count);
    for (int i = 0; i < LIVE; i++) free(slots[i]);
}

#define GROUP 16
#define IN_FLIGHT 32
#define MOST_SIDES 8

struct group {
    struct group *next;
    char *buffers[GROUP];
    size_t sizes[GROUP];
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct group *first, *last;
};

static struct group groups[IN_FLIGHT];
static struct queue full = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL};
static struct queue empty = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL};
static uint64_t groups_each;

static void put(struct queue *queue, struct group *group) {
    group->next = NULL;
    pthread_mutex_lock(&queue->lock);
    if (queue->first == NULL)
        queue->first = group;
    else
        queue->last->next = group;
    queue->last = group;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static struct group *take(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL) pthread_cond_wait(&queue->filled, &queue->lock);
    struct group *group = queue->first;
    queue->first = group->next;
    pthread_mutex_unlock(&queue->lock);
    return group;
}

static void *receive(void *argument) {
    uint64_t state = 88172645463325252u + (uint64_t)(size_t)argument;
    for (uint64_t g = 0; g < groups_each; g++) {
        struct group *group = take(&empty);
        for (int i = 0; i < GROUP; i++) {
            group->sizes[i] = (16u << 10) + (next_random(&state) >> 32) % (16u << 10);
            group->buffers[i] = must_malloc(group->sizes[i]);
            memset(group->buffers[i], (int)g, group->sizes[i]);
        }
        put(&full, group);
    }
    return NULL;
}

static void *answer(void *unused) {
    uint64_t sum = 0;
    for (uint64_t g = 0; g < groups_each; g++) {
        struct group *group = take(&full);
        for (int i = 0; i < GROUP; i++) {
            for (size_t at = 0; at < group->sizes[i]; at += 64) sum += (uint64_t)group->buffers[i][at];
            free(group->buffers[i]);
        }
        put(&empty, group);
    }
    escape(&sum);
    return unused;
}

static void buffers(struct span *span, unsigned scale, int sides) {
    pthread_t receivers[MOST_SIDES], answerers[MOST_SIDES];
    groups_each = scaled(16000, scale) / (uint64_t)sides + 1;
    for (int i = 0; i < IN_FLIGHT; i++) put(&empty, &groups[i]);
    span_begin(span);
    for (int s = 0; s < sides; s++)
        if (pthread_create(&receivers[s], NULL, receive, (void *)(size_t)s) != 0 ||
            pthread_create(&answerers[s], NULL, answer, NULL) != 0)
            die("no thread");
    for (int s = 0; s < sides; s++) {
        pthread_join(receivers[s], NULL);
        pthread_join(answerers[s], NULL);
    }
    span_end(span, groups_each * (uint64_t)sides * GROUP);
}

static void buffers_2(struct span *span, unsigned scale) {
    buffers(span, scale, 1);
}

static void buffers_16(struct span *span, unsigned scale) {
    buffers(span, scale, 8);
}

const struct workload large_workloads[] = {
    {"large", large},
    {"extents", extents},
    {"buffers-2", buffers_2},
    {"buffers-16", buffers_16},
    {NULL, NULL},
};
