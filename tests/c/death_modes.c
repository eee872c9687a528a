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
