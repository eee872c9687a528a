/* Gives back (argv[3]: free, realloc) a pointer argv[2] bytes inside a block of argv[1] bytes, then
 * enough other blocks of that size that a cache must give the entry back. */
#include "death_common.h"

enum { OTHERS = 5000 };

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    size_t size = (size_t)atol(argv[1]);
    static char *others[OTHERS];
    int count = size < 100000 ? OTHERS : 8;
    for (int i = 0; i < count; i++) others[i] = malloc(size);
    give_back(argv[3], opaque(others[count / 2] + atol(argv[2])));
    for (int i = 0; i < count; i++) {
        if (i != count / 2) free(others[i]);
    }
    survived();
}
