/* The first use of the last automatic arena by several threads at once, in many children; and which
 * arena the library's own thread has its memory from. Prints what went wrong. */
#include "proc_common.h"

void *mallocx(size_t size, int flags) __attribute__((weak));

enum { CHILDREN = 100, THREADS = 4, ARENAS = 8 };

static pthread_barrier_t begin;
static atomic_int refused;

static void *use_last(void *by_flag) {
    unsigned arena = ARENAS - 1;
    pthread_barrier_wait(&begin);
    bool is_refused = by_flag != NULL
        ? mallocx(100, (int)((arena + 1) << 20)) == NULL
        : mallctl("thread.arena", NULL, NULL, &arena, sizeof arena) != 0;
    if (is_refused) atomic_fetch_add(&refused, 1);
    return NULL;
}

static int child(bool by_flag) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&begin, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, use_last, by_flag ? &begin : NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return atomic_load(&refused);
}

static size_t bytes_in(unsigned arena) {
    uint64_t epoch = 1;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    size_t sum = 0;
    static const char *const kinds[] = {"small", "large"};
    for (int i = 0; i < 2; i++) {
        char name[60];
        size_t bytes, length = sizeof bytes;
        snprintf(name, sizeof name, "stats.arenas.%u.%s.allocated", arena, kinds[i]);
        CHECK(mallctl(name, &bytes, &length, NULL, 0) == 0);
        sum += bytes;
    }
    return sum;
}

/* The program may empty the arena at any time. */
static size_t bytes_of_own_thread(void) {
    unsigned arena;
    size_t length = sizeof arena;
    bool on = true;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
    CHECK(mallctl("thread.arena", NULL, NULL, &arena, sizeof arena) == 0);
    CHECK(mallctl("background_thread", NULL, NULL, &on, sizeof on) == 0);
    CHECK(library_threads() == 1);
    return bytes_in(arena);
}

int main(void) {
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            atomic_store(&refused, 0);
            _exit(child(i % 2 == 0));
        }
        int status;
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        atomic_fetch_add(&refused, WEXITSTATUS(status));
    }
    int of_children = atomic_load(&refused);
    say("refused=%d left=%zu\n", of_children, bytes_of_own_thread());
    return 0;
}
