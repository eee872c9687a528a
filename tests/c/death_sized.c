/* Frees a block of argv[2] bytes by the sized function argv[1], which is told argv[3] bytes. */
#include <dlfcn.h>

#include "death_common.h"

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    size_t size = strtoul(argv[2], NULL, 10), told = strtoul(argv[3], NULL, 10);
    void *function = dlsym(RTLD_DEFAULT, argv[1]);
    if (function == NULL) return 3;
    if (strcmp(argv[1], "free_sized") == 0) {
        ((void (*)(void *, size_t))function)(opaque(malloc(size)), told);
    } else if (strcmp(argv[1], "free_aligned_sized") == 0) {
        ((void (*)(void *, size_t, size_t))function)(opaque(aligned_alloc(64, size)), 64, told);
    } else {
        ((void (*)(void *, size_t, int))function)(opaque(malloc(size)), told, 0);
    }
    survived();
}
