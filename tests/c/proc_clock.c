/* A shared object whose clock_gettime allocates at its first call, as that of libfaketime does, which makes a
 * semaphore then. The clock is wrong by a day. Without memory it ends the program. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int is_ready;
    if (!is_ready) {
        is_ready = 1;
        void *volatile block = malloc(100);
        if (block == NULL) _exit(3);
        free(block);
    }
    int status = (int)syscall(SYS_clock_gettime, clock, time);
    if (status == 0) time->tv_sec += 24 * 3600;
    return status;
}
