/* Forks while one thread holds a stream and allocates, and another one waits for all streams: proc_fork_streams FORKS.
 * Both use streams in the child, too. */
#include "proc_common.h"
#include <stdio.h>

static FILE *stream;
static _Atomic int is_over, flushes;

static void *holds(void *unused) {
    while (!is_over) {
        flockfile(stream);
        for (size_t size = 16; size < 200000; size += size / 2) {
            char *block = malloc(size);
            CHECK(block != NULL);
            block[0] = 1;
            free(block);
        }
        CHECK(putc_unlocked('x', stream) == 'x');
        funlockfile(stream);
        usleep(10);
    }
    return unused;
}

static void *flushes_all(void *unused) {
    while (!is_over) {
        CHECK(fflush(NULL) == 0);
        flushes++;
        /* The lock of the streams goes to whoever is first. */
        usleep(100);
    }
    return unused;
}

int main(int count, char **words) {
    pthread_t threads[4];
    const int forks = count > 1 ? atoi(words[1]) : 1;
    CHECK((stream = fopen("/dev/null", "w")) != NULL);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, i % 2 ? holds : flushes_all, NULL) == 0);
    while (flushes == 0) usleep(100);
    for (int n = 0; n < forks; n++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            /* Opening, flushing and closing use the list of streams. */
            FILE *own = fopen("/dev/null", "w");
            _exit(own != NULL && fputs("child", own) >= 0 && fflush(NULL) == 0 && fclose(own) == 0 ? 0 : 1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    is_over = 1;
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("forks=%d\n", forks);
    return 0;
}
