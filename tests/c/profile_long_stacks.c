// Allocates from MADE stacks of some 120 return addresses each, which take more than 64 MiB: each
// number is a path through two functions, by its bits. Below them are LONG calls that are always the
// same. Keeps two blocks of the first path, allocated at the beginning and at the end, and those of
// the last MORE paths. Writes a profile to the file that it is given.
#include <stdlib.h>

int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

enum { BITS = 17, LONG = 100, MADE = 80000, MORE = 100 };

static void *block;

static void even(unsigned number, int bits);

static void below(int calls) {
    if (calls == 0)
        block = malloc(60000);
    else
        below(calls - 1);
    __asm__ volatile("" ::: "memory");
}

static void odd(unsigned number, int bits) {
    if (bits == 0)
        below(LONG);
    else
        (number & 1 ? odd : even)(number >> 1, bits - 1);
    __asm__ volatile("" ::: "memory");
}

static void even(unsigned number, int bits) {
    odd(number, bits);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    odd(0, BITS);
    for (unsigned number = 1; number < MADE + MORE; number++) {
        odd(number, BITS);
        if (number < MADE)
            free(block);
    }
    odd(0, BITS);
    return mallctl("prof.dump", NULL, NULL, &argv[1], sizeof argv[1]);
}
