/* Under a limit of addresses: the allocator reserves no more than it uses, a request beyond all limits
 * is NULL with ENOMEM, and ordinary work goes on. Prints the committed address space. */
#include "proc_common.h"

int main(void) {
    static unsigned char *blocks[4096];
    for (int i = 0; i < 4096; i++) blocks[i] = marked(1 + (size_t)i * 8, (unsigned char)i);
    errno = 0;
    void *volatile huge = malloc((size_t)1 << 40);
    CHECK(huge == NULL && errno == ENOMEM);
    size_t data = kib_of("/proc/self/status", "\nVmData:");
    for (int i = 0; i < 4096; i++) check_and_free(blocks[i], 1 + (size_t)i * 8, (unsigned char)i);
    say("requested_kib=%d data_kib=%zu\n", 4096 / 2 * 4096 * 8 / 1024, data);
    return 0;
}
