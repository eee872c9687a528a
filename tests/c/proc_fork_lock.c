/* A library registers handlers of fork before the program allocates. They take a lock under which other threads
 * allocate. The first fork is made before the program has allocated. */
#include "proc_common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int is_over;

static void take(void) {
    pthread_mutex_lock(&lock);
}

static void release(void) {
    pthread_mutex_unlock(&lock);
}

static void fork_once(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        free(malloc(100));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void before_constructors(void) {
    CHECK(pthread_atfork(take, release, release) == 0);
    fork_once();
}
__attribute__((section(".preinit_array"), used)) static void (*const at_first)(void) = before_constructors;

static void *churn(void *unused) {
    void *kept[500] = {NULL};
    for (unsigned random = 1; !is_over; usleep(100)) {
        take();
        for (int i = 0; i < 200; i++) {
            random = random * 1664525 + 1013904223;
            void **place = &kept[(random >> 8) % 500];
            free(*place);
            CHECK((*place = malloc((random >> 5) % 30000)) != NULL);
        }
        release();
    }
    for (int i = 0; i < 500; i++) free(kept[i]);
    return unused;
}

int main(void) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, churn, NULL) == 0);
    for (int i = 0; i < 300; i++) fork_once();
    is_over = 1;
    CHECK(pthread_join(other, NULL) == 0);
    say("forks=300\n");
    return 0;
}
