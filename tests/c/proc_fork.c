/* Forks of a threaded program under traffic: argv[1] of them. The child allocates, frees blocks of
 * the parent and its own, starts a thread, and forks again. Any lock left behind hangs the child;
 * any torn structure kills it. */
#include "proc_common.h"

enum { TRAFFIC = 4, SLOTS = 256, KEPT = 64 };

static atomic_bool stop;
static _Atomic(unsigned char *) slots[SLOTS];

/* Blocks change hands between the threads, so that frees are remote ones. */
static void *traffic(void *argument) {
    uint32_t state = (uint32_t)(uintptr_t)argument | 1;
    while (!atomic_load(&stop)) {
        uint32_t random = next_random(&state);
        size_t size = random % 512 == 0 ? 40000 + random % 100000 : 16 + random % 1500;
        unsigned char *block = malloc(size);
        CHECK(block != NULL);
        block[0] = 0x5A;
        block[size - 1] = 0x5A;
        block = atomic_exchange(&slots[random / 512 % SLOTS], block);
        if (block != NULL) CHECK(block[0] == 0x5A);
        free(block);
    }
    return NULL;
}

static void *child_thread(void *argument) {
    for (size_t size = 8; size < 100000; size += size / 3 + 1) {
        check_and_free(marked(size, 3), size, 3);
    }
    return argument;
}

static void use_the_heap(unsigned char **kept) {
    unsigned char *blocks[200];
    for (int i = 0; i < 200; i++) blocks[i] = marked(8 + (size_t)i * 37, (unsigned char)i);
    for (int i = 0; i < KEPT; i++) {
        unsigned char *grown = realloc(kept[i], 3000);
        CHECK(grown != NULL && grown[0] == (unsigned char)i);
        free(grown);
    }
    for (int i = 0; i < 200; i++) check_and_free(blocks[i], 8 + (size_t)i * 37, (unsigned char)i);
    free(calloc(1, 3 << 20));
}

static void reap(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child(unsigned char **kept) {
    use_the_heap(kept);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, child_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    pid_t again = fork();
    CHECK(again >= 0);
    if (again == 0) {
        child_thread(NULL);
        _exit(0);
    }
    reap(again);
    _exit(0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int forks = atoi(argv[1]);
    pthread_t threads[TRAFFIC];
    for (int i = 0; i < TRAFFIC; i++) {
        void *seed = (void *)(uintptr_t)(i * 7919 + 1);
        CHECK(pthread_create(&threads[i], NULL, traffic, seed) == 0);
    }
    unsigned char *kept[KEPT];
    for (int i = 0; i < KEPT; i++) kept[i] = marked(100 + (size_t)i, (unsigned char)i);
    for (int i = 0; i < forks; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child(kept);
        reap(pid);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < TRAFFIC; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < KEPT; i++) check_and_free(kept[i], 100 + (size_t)i, (unsigned char)i);
    for (int i = 0; i < SLOTS; i++) free(slots[i]);
    say("forks=%d\n", forks);
    return 0;
}
