/* Sixteen threads free by its size all that they made, and sleep. Blocks are left in the bins of their caches, and,
 * where they made many of one size, beside them. A child of a fork ends as the process does.
 *
 * Sampling begins when all threads are there: what the C library keeps for a living thread (320 bytes in each
 * pthread_create) is not freed at the exit, and would be sampled by chance. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

enum { THREADS = 16, MANY = 200, ROUNDS = 100, FEW = 8, SIZES = 16 };
static std::atomic<int> done{0};
static pthread_barrier_t begun;

extern "C" int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

static void make_and_free() {
    static thread_local void *many[MANY], *few[FEW][SIZES];
    pthread_barrier_wait(&begun);
    for (int round = 0; round < ROUNDS; round++) {
        for (auto &block : many) block = ::operator new(3000);
        for (auto block : many) ::operator delete(block, 3000);
    }
    for (auto &sizes : few)
        for (int i = 0; i < SIZES; i++) sizes[i] = ::operator new(500 * (i + 1));
    for (auto &sizes : few)
        for (int i = 0; i < SIZES; i++) ::operator delete(sizes[i], 500 * (i + 1));
    done++;
    for (;;) pause();
}

int main() {
    pthread_barrier_init(&begun, nullptr, THREADS + 1);
    for (int i = 0; i < THREADS; i++) std::thread(make_and_free).detach();
    bool active = true;
    if (mallctl == nullptr || mallctl("prof.active", nullptr, nullptr, &active, sizeof active) != 0) return 3;
    pthread_barrier_wait(&begun);
    while (done < THREADS) usleep(1000);
    pid_t child = fork();
    if (child == 0) exit(0);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "the child's status is %d\n", status);
        return 2;
    }
    return 0;
}
