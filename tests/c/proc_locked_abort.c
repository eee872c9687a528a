/* A process that locks its memory, what it has and what it will have, frees a block twice. A handler of the
 * signal prints the resident memory. */
#include "proc_common.h"

#include <signal.h>

static void handler(int signal) {
    (void)signal;
    void *block = malloc(100);
    say("block=%d resident_kib=%zu\n", block != NULL, kib_of("/proc/self/status", "\nVmRSS:"));
    _exit(0);
}

int main(void) {
    if (!locks_everything()) {
        say("this user may not\n");
        return 0;
    }
    signal(SIGABRT, handler);
    void *volatile block = malloc(1 << 20);
    free(block);
    free(block);
    return 1;
}
