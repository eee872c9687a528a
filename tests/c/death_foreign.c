/* Gives back (argv[2]: free, realloc) a pointer that no allocation returned: argv[1] is "stack",
 * "static", "mapped" (a page of the program's own) or "unmapped". */
#include <sys/mman.h>

#include "death_common.h"

static _Alignas(64) char fixed[4096];

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    _Alignas(64) char local[4096];
    free(opaque(malloc(64)));
    void *pointer = local;
    if (strcmp(argv[1], "static") == 0) pointer = fixed;
    if (strcmp(argv[1], "mapped") == 0 || strcmp(argv[1], "unmapped") == 0) {
        pointer = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (strcmp(argv[1], "unmapped") == 0) munmap(pointer, 4 << 20);
    }
    give_back(argv[2], opaque(pointer));
    survived();
}
