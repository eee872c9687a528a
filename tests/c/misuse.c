/* Commits the misuse argv[1] on a block of argv[2] bytes, says that nothing noticed it, and ends by the return of main.
 * A kind that asks for a promise ("is freed memory zeroed?") says so only if the promise is not kept. `list` prints the
 * kinds, with `sized` behind those that depend on the size. docs/misuse.md has what each allocator finds. */
#include <stdlib.h>

static void *allocate(size_t bytes) { return malloc(bytes); }
static void deallocate(void *block) { free(block); }

#include "misuse_kinds.h"

static int not_in_place_when_much_longer(void) {
    unsigned char *p = block();
    return opaque(realloc(p, size * 64)) != p;
}
static int impossible_request(void) { return opaque(malloc((size_t)(uintptr_t)opaque((void *)-4096))) == NULL; }

static const struct kind KINDS[] = {
    COMMON_KINDS, PROMISE(not_in_place_when_much_longer), KINDS_OF_NOTHING,
    {"impossible_request", 0, NULL, impossible_request},
};

int main(int argc, char **argv) { return commit(KINDS, sizeof KINDS / sizeof *KINDS, argc, argv); }
