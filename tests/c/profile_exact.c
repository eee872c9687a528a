// Allocations, each of which an exact profile has to know. By the first argument:
//   work: blocks of many sizes, of which some are resized, zeroed, aligned, empty, and freed
//   grow: blocks of 256 bytes that grow to 300, for which the next class has room
//   sizes: one block of each size from 1 to 2000, from one place
//   late: blocks of the destructors of threads, in each round of them
//   leak: one block
//   many: more sizes than are counted apart, from one place
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 20, GROWN = 40, SIZES = 2000, APART = 1 << 20 };

static void *kept[6000];
static int used;

static void *keep(void *block) {
    kept[used++] = block;
    return block;
}

static void work(void) {
    for (size_t n = 0; n < 3000; n++) {
        char *block = malloc(n % 700);
        if (n % 700 > 0)
            memset(block, 1, n % 700);
        if (n % 3 == 0)
            block = realloc(block, n % 900 + 1);
        if (n % 5 == 0)
            block = realloc(block, n % 900 + 9);
        n % 2 == 0 ? (void)keep(block) : free(block);
        if (n % 7 == 0)
            keep(calloc(n % 11 + 1, 13));
        if (n % 13 == 0)
            free(aligned_alloc(64, 64 * (n % 4 + 1)));
    }
}

static void grow(void) {
    for (int n = 0; n < GROWN; n++)
        keep(realloc(malloc(256), 300));
}

static void sizes(void) {
    for (size_t size = 1; size <= SIZES; size++)
        keep(malloc(size));
}

static void many(void) {
    for (size_t size = 1; size <= APART + 10; size++) {
        void *block = malloc(size);
        size <= APART ? free(block) : (void)keep(block);
        __asm__ volatile("" ::"r"(block) : "memory");
    }
}

static pthread_key_t key;

// The C library makes four rounds.
static void destroy(void *value) {
    keep(malloc(123));
    keep(malloc(40000));
    free(keep(malloc(77)));
    used--;
    keep(malloc(0));
    kept[used - 2] = realloc(kept[used - 2], 50000);
    pthread_setspecific(key, value);
}

static void *run(void *value) {
    free(malloc(10));
    pthread_setspecific(key, value);
    return NULL;
}

static void late(void) {
    if (pthread_key_create(&key, destroy) != 0)
        exit(2);
    for (int n = 0; n < THREADS; n++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, &used) != 0)
            exit(2);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv) {
    const char *what = argc < 2 ? "" : argv[1];
    if (strcmp(what, "work") == 0)
        work();
    if (strcmp(what, "grow") == 0)
        grow();
    if (strcmp(what, "sizes") == 0)
        sizes();
    if (strcmp(what, "late") == 0)
        late();
    if (strcmp(what, "leak") == 0)
        keep(malloc(100));
    if (strcmp(what, "many") == 0)
        many();
    return 0;
}
