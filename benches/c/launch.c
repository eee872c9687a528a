/* Starts one measured program and prints what it cost: `launch SECONDS PROGRAM ARGS...`.
 *
 * A child's ru_maxrss starts at the resident size of whoever spawned it (exec keeps the high-water
 * mark of the address space it replaces). This helper is a small static program, so that the floor
 * is under 1 MiB and the same for all, and LD_PRELOAD in its environment reaches the child alone. */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static pid_t child;

static void on_alarm(int signal) {
    (void)signal;
    kill(child, SIGKILL);
}

static unsigned long long microseconds(struct timeval time) {
    return (unsigned long long)time.tv_sec * 1000000u + (unsigned long long)time.tv_usec;
}

int main(int argc, char **argv) {
    struct rusage usage;
    int status;
    if (argc < 3) return 2;
    if (posix_spawn(&child, argv[2], NULL, NULL, argv + 2, environ) != 0) return 2;
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
