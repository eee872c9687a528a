/* Tells what became of the container's bounds. With an argument: 64 MiB are used and freed in one
 * arena, then 64 MiB used in another: with decay off, nothing but the soft bound gives the first
 * ones back. "unbound" takes the bound off before. With "unreadable" the process can open no file
 * while it uses the second 64 MiB. Any other argument is what the container may have from then on: it
 * is written between the two. */
#include "lumalloc.h"
#include "proc_common.h"

#include <sys/resource.h>

enum { BLOCK = 1 << 20, BLOCKS = 64 };

static void *blocks[BLOCKS];

static void use(unsigned arena) {
    for (size_t at = 0; at < BLOCKS; at++) {
        blocks[at] = mallocx(BLOCK, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE);
        CHECK(blocks[at] != NULL);
        memset(blocks[at], 1, BLOCK);
    }
}

/* Changes what the container may have. */
static void resize(const char *bytes) {
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "w");
    CHECK(file != NULL && fputs(bytes, file) > 0 && fclose(file) == 0);
}

/* Sets how many files may be open. Returns how many might be open before. */
static rlim_t allow_files(rlim_t most) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return before;
}

static void use_without_files(unsigned arena) {
    rlim_t before = allow_files(0);
    CHECK(open("/proc/self/cgroup", O_RDONLY) == -1 && errno == EMFILE);
    use(arena);
    allow_files(before);
}

static void grow(const char *what) {
    unsigned arenas[2];
    size_t length = sizeof arenas[0];
    CHECK(mallctl("arenas.create", &arenas[0], &length, NULL, 0) == 0);
    CHECK(mallctl("arenas.create", &arenas[1], &length, NULL, 0) == 0);
    use(arenas[0]);
    for (size_t at = 0; at < BLOCKS; at++) dallocx(blocks[at], MALLOCX_TCACHE_NONE);
    if (strcmp(what, "unreadable") == 0) {
        use_without_files(arenas[1]);
        return;
    }
    if (strcmp(what, "grow") != 0 && strcmp(what, "unbound") != 0) resize(what);
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
    if (argc > 1) grow(argv[1]);
    say("soft=%zu narenas=%u rss_kib=%zu\n", soft, narenas, rss_kib());
    return 0;
}
