/* How deep the first requests of a thread go down its stack, and those by which the heap grows to 50 MB:
 * what they touch there stays in memory for as long as the thread lives, and stacks of coroutines are
 * small. Prints the bytes. */
#include "proc_common.h"

enum { BELOW = 96 << 10, STACK = 128 << 10, MARK = 0xa5 };
static unsigned char *stack;

/* Not through memset, which would lie on what it paints. */
__attribute__((noinline)) static void paint(volatile unsigned char *from, size_t length) {
    for (size_t at = 0; at < length; at++) from[at] = MARK;
}

/* The painted bytes below `from` that were written. */
__attribute__((noinline)) static size_t written(const volatile unsigned char *from) {
    const volatile unsigned char *at = from - BELOW;
    while (at < from && *at == MARK) at++;
    return (size_t)(from - at);
}

static void grow(void) {
    static char *volatile blocks[20000];
    enum { COUNT = sizeof blocks / sizeof *blocks };
    for (size_t n = 0; n < COUNT; n++) CHECK((blocks[n] = malloc(1 + n * 91 % 5000)) != NULL);
    for (size_t n = 0; n < COUNT; n++) free(blocks[n]);
}

static void *first_requests(void *unused) {
    (void)unused;
    unsigned char here;
    /* Room for what paints. */
    unsigned char *from = &here - 512;
    CHECK(from - BELOW > stack);
    paint(from - BELOW, BELOW);
    for (size_t size = 1; size <= 1 << 16; size += size / 3 + 1) {
        char *volatile block = malloc(size);
        CHECK(block != NULL);
        free(block);
    }
    size_t first = written(from);
    paint(from - BELOW, BELOW);
    grow();
    say("stack=%zu\ngrowth=%zu\n", first, written(from));
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    stack = private_pages(STACK);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, first_requests, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
