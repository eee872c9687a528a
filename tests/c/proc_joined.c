/* Threads that fill and free much, and end. When all were joined no thread of the library is left, not
 * even for a moment. Prints whether there was one before in any of the processes, and in how many
 * there is one afterwards. */
#include <sys/wait.h>

#include "proc_common.h"

enum { PROCESSES = 30, THREADS = 4, BLOCKS = 40000 };

static pthread_barrier_t filled;

/* Returns whether there was a background thread meanwhile. */
static void *fill_and_free(void *unused) {
    (void)unused;
    char **blocks = malloc(BLOCKS * sizeof *blocks);
    for (int n = 0; n < BLOCKS; n++) {
        blocks[n] = malloc(500);
        memset(blocks[n], 1, 500);
    }
    pthread_barrier_wait(&filled);
    for (int n = 0; n < BLOCKS; n++) free(blocks[n]);
    free(blocks);
    return library_threads() > 0 ? &filled : NULL;
}

/* One process: bit 0 says whether there was a background thread, bit 1 whether one is left. */
static int run(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&filled, NULL, THREADS);
    int seen = 0;
    for (int n = 0; n < THREADS; n++) {
        CHECK(pthread_create(&threads[n], NULL, fill_and_free, NULL) == 0);
    }
    for (int n = 0; n < THREADS; n++) {
        void *was_there;
        CHECK(pthread_join(threads[n], &was_there) == 0);
        if (was_there != NULL) seen = 1;
    }
    return seen + 2 * (int)library_threads();
}

int main(void) {
    int started = 0, left = 0;
    for (int n = 0; n < PROCESSES; n++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(run());
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        started |= WEXITSTATUS(status) & 1;
        left += WEXITSTATUS(status) >> 1;
    }
    say("started=%d left=%d\n", started, left);
    return 0;
}
