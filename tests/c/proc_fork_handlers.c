/* Handlers of fork that were registered before the library was first used, and allocate: they run while the library
 * holds its locks. Other threads allocate meanwhile, and each second fork is that of a thread which has not. */
#include "proc_common.h"

#define KEPT 64

static void *kept[KEPT];
static _Atomic int handled, is_over;

static void allocate(void) {
    for (size_t size = 8; size < 300000; size += size / 16 + 8) {
        char *block = malloc(size);
        CHECK(block != NULL);
        block[0] = block[size - 1] = 1;
        void **place = &kept[size % KEPT];
        free(*place);
        *place = block;
    }
    handled++;
}

static void before_constructors(void) {
    CHECK(pthread_atfork(allocate, allocate, allocate) == 0);
}
__attribute__((section(".preinit_array"), used)) static void (*const at_first)(void) = before_constructors;

static void *churn(void *unused) {
    while (!is_over) {
        void *blocks[100];
        for (size_t i = 0; i < 100; i++) CHECK((blocks[i] = malloc(16 + i * 50)) != NULL);
        for (size_t i = 0; i < 100; i++) free(blocks[i]);
    }
    return unused;
}

static void *forks(void *unused) {
    const int before = handled;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(handled == before + 2);
        for (int i = 0; i < KEPT; i++) free(kept[i]), kept[i] = NULL;
        allocate();
        pid_t grandchild = fork();
        if (grandchild == 0) _exit(0);
        int status;
        CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(handled == before + 2);
    return unused;
}

int main(void) {
    pthread_t others[2], thread;
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&others[i], NULL, churn, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        forks(NULL);
        CHECK(pthread_create(&thread, NULL, forks, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    is_over = 1;
    for (int i = 0; i < 2; i++) CHECK(pthread_join(others[i], NULL) == 0);
    say("handled=%d\n", handled);
    return 0;
}
