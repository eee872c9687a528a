/* A child that is made by the system call, past the C library's handlers, while the background thread rests: it has
 * no such thread, gives memory back by its own slow paths, and may turn the thread off. Prints the number of threads
 * that the library tells of before the fork and in the child, and what the child has in use and what is left. */
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "proc_common.h"

enum { BLOCKS = 40000, SIZE = 1000 };

static size_t fill_and_free(void) {
    static char *blocks[BLOCKS];
    for (int n = 0; n < BLOCKS; n++) {
        blocks[n] = malloc(SIZE);
        memset(blocks[n], 1, SIZE);
    }
    size_t full = rss_kib();
    for (int n = 0; n < BLOCKS; n++) free(blocks[n]);
    return full;
}

static void *sleep_on(void *unused) {
    free(malloc(100));
    pause();
    return unused;
}

/* Slow paths for some time, as a program that goes on has them. */
static void go_on(void) {
    for (int n = 0; n < 100; n++) {
        free(malloc(3 << 20));
        usleep(10000);
    }
}

static void child(void) {
    alarm(60);
    size_t threads = library_threads(), full = fill_and_free();
    go_on();
    size_t left = rss_kib();
    bool on = false;
    CHECK(mallctl("background_thread", NULL, NULL, &on, sizeof on) == 0);
    say("child_threads=%zu full_kib=%zu left_kib=%zu\n", threads, full, left);
    _exit(0);
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sleep_on, NULL) == 0);
    fill_and_free();
    go_on();
    /* The thread rests, or it was never started. */
    usleep(500000);
    say("threads=%zu\n", library_threads());
    long made = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (made == 0) child();
    int status;
    CHECK(made > 0 && waitpid((pid_t)made, &status, 0) == made);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}
