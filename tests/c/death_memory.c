/* Asks argv[1] for argv[2] bytes, too many to be served; under xmalloc that is a death. */
#include "death_common.h"

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    size_t size = strtoul(argv[2], NULL, 10);
    void *small = malloc(10);
    void *pointer = small;
    if (strcmp(argv[1], "malloc") == 0) pointer = malloc(size);
    if (strcmp(argv[1], "calloc") == 0) pointer = calloc(1, size);
    if (strcmp(argv[1], "realloc") == 0) pointer = realloc(small, size);
    if (strcmp(argv[1], "aligned_alloc") == 0) pointer = aligned_alloc(4096, size);
    if (strcmp(argv[1], "posix_memalign") == 0) {
        pointer = NULL;
        return posix_memalign(&pointer, 64, size) == ENOMEM ? 0 : 1;
    }
    return pointer == NULL && errno == ENOMEM ? 0 : 1;
}
