/* Many sparse slabs of one class: one block in a hundred stays. Prints the resident memory before
 * and after a purge. */
#include "proc_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { BLOCK = 512, BLOCKS = 1200000, KEPT = 100 };

int main(void) {
    static unsigned char *blocks[BLOCKS];
    for (int n = 0; n < BLOCKS; n++) {
        blocks[n] = malloc(BLOCK);
        CHECK(blocks[n] != NULL);
        memset(blocks[n], 7, BLOCK);
    }
    size_t full = rss_kib();
    for (int n = 0; n < BLOCKS; n++)
        if (n % KEPT != 0) free(blocks[n]);
    CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
    CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
    size_t purged = rss_kib();
    for (int n = 0; n < BLOCKS; n += KEPT) check_and_free(blocks[n], BLOCK, 7);
    say("full_kib=%zu purged_kib=%zu\n", full, purged);
    return 0;
}
