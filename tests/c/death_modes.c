/* Commits the crime of argv[1] on a block of argv[2] bytes, in a mode that notices at once. "overflow"
 * and "after-free" look for a guarded sample: a block whose usable size is what was asked for. */
#include <malloc.h>

#include "death_common.h"

static unsigned char *sample(size_t size) {
    for (int i = 0; i < 100000; i++) {
        unsigned char *block = opaque(malloc(size));
        if (malloc_usable_size(block) == size && (uintptr_t)block % 4096 != 0) return block;
        free(block);
    }
    _exit(9);
}

/* Returns a block that begins `distance` bytes behind another one and, if `first` is set, begins a page. */
static unsigned char *behind(size_t size, size_t distance, int first) {
    static unsigned char *blocks[4000];
    for (int n = 0; n < 4000; n++) {
        blocks[n] = opaque(malloc(size));
        for (int m = 0; m < n; m++) {
            unsigned char *low = blocks[n] < blocks[m] ? blocks[n] : blocks[m];
            unsigned char *high = blocks[n] < blocks[m] ? blocks[m] : blocks[n];
            if ((size_t)(high - low) == distance && (!first || (uintptr_t)high % 4096 == 0)) return high;
        }
    }
    _exit(9);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t size = (size_t)atol(argv[2]);
    if (strcmp(argv[1], "twice") == 0) {
        void *block = malloc(size), *neighbour = malloc(size);
        free(opaque(block));
        free(opaque(block));
        free(neighbour);
    } else if (strcmp(argv[1], "canary") == 0) {
        unsigned char *block = opaque(malloc(size));
        block[malloc_usable_size(block)] ^= 0x55;
        free(block);
    } else if (strncmp(argv[1], "under ", 6) == 0) {
        unsigned char *block = behind(size, (size_t)atol(argv[1] + 6), strstr(argv[1], "page") != NULL);
        block[-1] ^= 0x55;
        free(opaque(block));
    } else if (strcmp(argv[1], "overflow") == 0) {
        unsigned char *block = sample(size);
        *(volatile unsigned char *)(block + size + 16) = 1;
    } else if (strcmp(argv[1], "after-free") == 0) {
        unsigned char *block = sample(size);
        free(opaque(block));
        *(volatile unsigned char *)block = 1;
    }
    survived();
}
