/* The pair that `benches/golden/check` counts in the shared object, called as C calls it. Between
 * two calls of lumalloc_golden_window lie exactly PAIRS of each. */
#include <stdlib.h>

enum { WARM_UP = 1000, WINDOWS = 24, PAIRS = 64 };

__attribute__((noinline, noipa)) void lumalloc_golden_window(void) {
    __asm__ volatile("");
}

static void pairs(int count) {
    for (int i = 0; i < count; i++) {
        void *block = malloc(32);
        __asm__ volatile("" : : "g"(block) : "memory");
        free(block);
    }
}

int main(void) {
    pairs(WARM_UP);
    for (int i = 0; i < WINDOWS; i++) {
        lumalloc_golden_window();
        pairs(PAIRS);
    }
    lumalloc_golden_window();
    return 0;
}
