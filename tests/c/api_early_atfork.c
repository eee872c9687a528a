/* A constructor registers handlers of fork that take a lock, before anything is allocated. Threads allocate under that
 * lock while the process forks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, BLOCKS = 200, FORKS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_over;

static void take(void) { pthread_mutex_lock(&lock); }
static void give(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void early(void) { pthread_atfork(take, give, give); }

static void *allocate(void *unused) {
    (void)unused;
    void *blocks[BLOCKS] = {NULL};
    for (unsigned n = 0; !is_over;) {
        take();
        for (int i = 0; i < 20; i++, n++) {
            free(blocks[n * 7 % BLOCKS]);
            blocks[n * 7 % BLOCKS] = malloc(10000 + n * 997 % 100000);
        }
        give();
        /* The fork takes the lock now and then. */
        usleep(100);
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    return NULL;
}

int main(void) {
    alarm(60);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, allocate, NULL) != 0) return 2;
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 3;
    }
    is_over = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    puts("ok");
    return 0;
}
