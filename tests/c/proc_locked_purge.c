/* A purge of sparse slabs in a process whose memory is locked, where the system refuses to take it
 * back. Without the right to lock all of it, locks what it may. */
#include "proc_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { BLOCK = 512, BLOCKS = 40000, KEPT = 100 };

int main(void) {
    static unsigned char *blocks[BLOCKS];
    for (int n = 0; n < BLOCKS; n++) {
        blocks[n] = malloc(BLOCK);
        CHECK(blocks[n] != NULL);
        memset(blocks[n], 7, BLOCK);
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) CHECK(errno == EPERM || errno == ENOMEM);
    for (int n = 0; n < BLOCKS; n++)
        if (n % KEPT != 0) free(blocks[n]);
    CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
    CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
    for (int n = 0; n < BLOCKS; n += KEPT) {
        CHECK(blocks[n][0] == 7 && blocks[n][BLOCK - 1] == 7);
        free(blocks[n]);
    }
    say("ok\n");
    return 0;
}
