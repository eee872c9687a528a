/* Starts one measured program and prints what it cost: `launch SECONDS PROGRAM ARGS...`.
 * `launch warm MIB` touches so much memory and gives it back: on a virtual machine the next process
 * then finds memory that the host has given already.
 *
 * After SECONDS the child is killed, with all that it has started in its process group.
 *
 * A child's ru_maxrss starts at the resident size of whoever spawned it (exec keeps the high-water
 * mark of the address space it replaces). This helper is a small static program, so that the floor
 * is under 1 MiB and the same for all, and LD_PRELOAD in its environment reaches the child alone. */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static pid_t child;

static void on_alarm(int signal) {
    (void)signal;
    kill(-child, SIGKILL);
}

static unsigned long long microseconds(struct timeval time) {
    return (unsigned long long)time.tv_sec * 1000000u + (unsigned long long)time.tv_usec;
}

static int warm(size_t bytes) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return 2;
    madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at < bytes; at += 4096) ((volatile char *)memory)[at] = 1;
    return 0;
}

int main(int argc, char **argv) {
    struct rusage usage;
    int status;
    if (argc < 3) return 2;
    if (strcmp(argv[1], "warm") == 0) return warm((size_t)atoi(argv[2]) << 20);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (posix_spawn(&child, argv[2], NULL, &attributes, argv + 2, environ) != 0) return 2;
    signal(SIGALRM, on_alarm);
    alarm((unsigned)atoi(argv[1]));
    while (wait4(child, &status, 0, &usage) < 0)
        ;
    /* status: 0, the exit code, or 128 + the signal, as a shell says it */
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    printf("usage %d %llu %llu %ld %ld %ld\n", code, microseconds(usage.ru_utime), microseconds(usage.ru_stime),
           usage.ru_maxrss, usage.ru_minflt, usage.ru_majflt);
    return 0;
}
