/* Frees a block of argv[1] bytes twice, then enough others of its size that a cache must give both
 * entries back, and trims: a free by the owner and one by a stranger meet when the slab takes in
 * what strangers freed. argv[2] says who frees: "own" this thread, "other" a second thread both times,
 * "both" this thread once and a second thread once. */
#include <malloc.h>
#include <pthread.h>

#include "death_common.h"

enum { OTHERS = 5000 };

static void *free_twice(void *block) {
    free(opaque(block));
    free(opaque(block));
    return NULL;
}

static void *free_once(void *block) {
    free(opaque(block));
    return NULL;
}

static void by_another_thread(void *(*body)(void *), void *block) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, block) != 0) _exit(7);
    pthread_join(thread, NULL); /* its exit gives back what its cache holds */
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t size = (size_t)atol(argv[1]);
    static void *others[OTHERS];
    int count = size < 100000 ? OTHERS : 8;
    for (int i = 0; i < count; i++) others[i] = malloc(size);
    void *block = others[count / 2];
    if (strcmp(argv[2], "own") == 0) {
        free_twice(block);
    } else if (strcmp(argv[2], "other") == 0) {
        by_another_thread(free_twice, block);
    } else {
        by_another_thread(free_once, block);
        free_once(block);
    }
    for (int i = 0; i < count; i++) {
        if (i != count / 2) free(others[i]);
    }
    malloc_trim(0);
    survived();
}
