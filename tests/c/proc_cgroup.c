/* Tells what became of the container's bounds. With an argument: 64 MiB are used and freed in one
 * arena, then 64 MiB used in another: with decay off, nothing but the soft bound gives the first
 * ones back. "unbound" takes the bound off before. */
#include "lumalloc.h"
#include "proc_common.h"

enum { BLOCK = 1 << 20, BLOCKS = 64 };

static void *blocks[BLOCKS];

static void use(unsigned arena) {
    for (size_t at = 0; at < BLOCKS; at++) {
        blocks[at] = mallocx(BLOCK, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
        CHECK(blocks[at] != NULL);
        memset(blocks[at], 1, BLOCK);
    }
}

static void grow(void) {
    unsigned arenas[2];
    size_t length = sizeof arenas[0];
    CHECK(mallctl("arenas.create", &arenas[0], &length, NULL, 0) == 0);
    CHECK(mallctl("arenas.create", &arenas[1], &length, NULL, 0) == 0);
    use(arenas[0]);
    for (size_t at = 0; at < BLOCKS; at++) dallocx(blocks[at], MALLOCX_TCACHE_NONE);
    use(arenas[1]);
}

int main(int argc, char **argv) {
    size_t soft, none = 0, length = sizeof soft;
    unsigned narenas;
    CHECK(mallctl("limit.soft", &soft, &length, NULL, 0) == 0);
    length = sizeof narenas;
    CHECK(mallctl("arenas.narenas", &narenas, &length, NULL, 0) == 0);
    if (argc > 1 && strcmp(argv[1], "unbound") == 0)
        CHECK(mallctl("limit.soft", NULL, NULL, &none, sizeof none) == 0);
    if (argc > 1) grow();
    say("soft=%zu narenas=%u rss_kib=%zu\n", soft, narenas, rss_kib());
    return 0;
}
