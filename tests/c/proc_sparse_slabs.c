/* Sparse slabs of one class that are purged: of argv[1] blocks, one in a hundred stays. With the
 * argument "lock" the process locks its memory first, so that the system refuses to take it back.
 * Prints whether the memory is locked, which takes the right to lock all of it, and the resident
 * memory before the frees and after the purge. */
#include "proc_common.h"

#include <sys/resource.h>

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { BLOCK = 512, MOST = 1200000, KEPT = 100 };

int main(int argc, char **argv) {
    static unsigned char *blocks[MOST];
    CHECK(argc > 1);
    int count = atoi(argv[1]);
    CHECK(count > 0 && count <= MOST);
    for (int n = 0; n < count; n++) blocks[n] = marked(BLOCK, 7);
    bool locked = argc > 2 && strcmp(argv[2], "lock") == 0 && locks_everything();
    size_t full = rss_kib();
    for (int n = 0; n < count; n++)
        if (n % KEPT != 0) check_and_free(blocks[n], BLOCK, 7);
    CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
    CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
    size_t purged = rss_kib();
    for (int n = 0; n < count; n += KEPT) check_and_free(blocks[n], BLOCK, 7);
    say("locked=%d full_kib=%zu purged_kib=%zu\n", locked, full, purged);
    return 0;
}
