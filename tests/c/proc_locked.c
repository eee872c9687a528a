/* A process that locks its memory, what it has and what it will have, before its first request.
 * With an argument it first becomes a user who may lock so many KiB, which the system counts by
 * addresses; without one it must be one who may lock everything. Says so if it may not.
 * Prints the resident memory, and how many KiB it could allocate before it was refused more. */
#include "proc_common.h"

enum { NOBODY = 65534, BLOCK = 1000, MOST = 4096 };

/* Returns whether the user may become that one, and lock. */
static bool locks_as_a_user_who_may_lock(size_t kib) {
    struct rlimit limit = {kib << 10, kib << 10};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
    if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) return false;
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    return true;
}

int main(int argc, char **argv) {
    if (argc > 1 ? !locks_as_a_user_who_may_lock(strtoul(argv[1], NULL, 10)) : !locks_everything()) {
        say("this user may not\n");
        return 0;
    }
    static unsigned char *blocks[MOST];
    size_t count = 0;
    free(marked(BLOCK, 1));
    size_t resident = kib_of("/proc/self/status", "\nVmRSS:");
    while (count < MOST) {
        errno = 0;
        blocks[count] = malloc(BLOCK);
        if (blocks[count] == NULL) break;
        memset(blocks[count], 7, BLOCK);
        count++;
    }
    CHECK(count == MOST || errno == ENOMEM);
    for (size_t i = 0; i < count; i++) check_and_free(blocks[i], BLOCK, 7);
    free(marked(BLOCK, 1));
    say("resident_kib=%zu allocated_kib=%zu\n", resident, count * BLOCK / 1024);
    return 0;
}
