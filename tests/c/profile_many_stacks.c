// Allocates from more than 2^20 stacks: each number below that is a path through two functions,
// by the bits of the number. Keeps the blocks of the last MORE. Writes a profile to the file that it
// is given. With another argument it keeps none of them, and MORE large blocks from another place.
#include <stdlib.h>

int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

enum { BITS = 20, KEPT_BY_PROFILER = 1 << BITS, MORE = 100 };

static void *block;

static void even(unsigned number, int bits);

static void odd(unsigned number, int bits) {
    if (bits == 0)
        block = malloc(64);
    else
        (number & 1 ? odd : even)(number >> 1, bits - 1);
    __asm__ volatile("" ::: "memory");
}

static void even(unsigned number, int bits) {
    odd(number, bits);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void keep_large(void) {
    block = malloc(1 << 20);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    for (unsigned number = 0; number < KEPT_BY_PROFILER + MORE; number++) {
        odd(number, BITS + 1);
        if (number < KEPT_BY_PROFILER || argc > 2)
            free(block);
    }
    for (int i = 0; i < MORE && argc > 2; i++)
        keep_large();
    return argc < 2 ? 2 : mallctl("prof.dump", NULL, NULL, &argv[1], sizeof argv[1]);
}
