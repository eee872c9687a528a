/* The background thread, asked for by option. The first argument says what is tried:
 *   idle      fills and frees much and does nothing more; prints what was in use, what stays and
 *             the thread's properties
 *   refused   cannot make threads: the limit of processes
 *   seccomp   cannot make threads: the system call is forbidden
 *   callers   fills and frees much while another thread sleeps; prints what was in use and what is
 *             left. No other thread can be made: the system call answers with the second argument
 *   last      the main thread ends by pthread_exit: the process must end, with status 0
 *   exit      exits while the thread is in the middle of a pass
 *   loader    memory becomes unused while the C library holds the lock of its thread stacks, after
 *             much else has; with `alone` as the second argument nothing has before
 *   vfork     memory becomes unused in the child of a vfork
 *   asleep    a thread sleeps with a full cache, until that is emptied or for so many times 20 ms as
 *             the second argument says, and goes on
 */
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "proc_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

/* Fills that much memory and frees it; what the process had while it was in use, in KiB. */
static size_t dirty(size_t mib) {
    size_t count = mib << 10;
    char **blocks = malloc(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(1000);
        memset(blocks[i], 1, 1000);
    }
    /* Nothing is taken from blocks in use, however long the machine holds the process up. */
    size_t full = rss_kib();
    for (size_t i = 0; i < count; i++) free(blocks[i]);
    free(blocks);
    return full;
}

/* Finds a line of /proc/self/task/<tid>/status; 1 if the thread's name is `name`. */
static int is_named(const char *tid, const char *name, char *mask) {
    char path[300], line[300];
    int found = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "Name:\t", 6) == 0) found = strcmp(line + 6, name) == 0;
        if (strncmp(line, "SigBlk:\t", 8) == 0) strcpy(mask, line + 8);
    }
    fclose(file);
    return found;
}

static int background_threads(char *mask) {
    int count = 0;
    char other[300];
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;)
        if (task->d_name[0] != '.' && is_named(task->d_name, "lumalloc_bg", other)) {
            strcpy(mask, other);
            count++;
        }
    closedir(tasks);
    return count;
}

/* The threads of the calling process. */
static int tasks(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void idle(void) {
    char mask[300] = "";
    size_t before = rss_kib();
    size_t full = dirty(64);
    size_t left = full;
    /* The longest that a busy machine needs; what is judged is that it comes at all. */
    for (int i = 0; i < 3000 && left > before + (8 << 10); i++) {
        sleep_ms(20);
        left = rss_kib();
    }
    /* Only now has the thread surely had time to take its name. */
    int threads = background_threads(mask);
    printf("before_kib=%zu full_kib=%zu left_kib=%zu threads=%d blocked=%s\n", before, full, left,
         threads, mask);
}

static int is_set(const char *key) {
    char on = 2;
    size_t length = 1;
    CHECK(mallctl(key, &on, &length, NULL, 0) == 0);
    return on;
}

static int is_on(void) {
    return is_set("background_thread");
}

static void try(void) {
    char on = 1;
    dirty(8);
    CHECK(!is_on());
    CHECK(mallctl("background_thread", NULL, NULL, &on, 1) == EAGAIN);
    CHECK(!is_on());
    dirty(8);
    printf("refused, auto=%d\n", is_set("background_thread_auto"));
}

static void refused(void) {
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
    if (geteuid() == 0) CHECK(setuid(65534) == 0);
    try();
}

/* Has the system answer with an error from now on when a thread is made. */
static void refuse_threads(int error) {
    struct sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void seccomp(void) {
    refuse_threads(EPERM);
    try();
}

#define BLOCK 14336
/* The fall after which much memory counts as unused, and what of it is left to the loader's frees. */
#define FALL (16 << 20)
#define LEFT (64 << 10)
/* Enough threads that what belongs to them is the rest of the fall. They allocate nothing, so that
 * there are few caches and a rise of memory starts no thread before. */
#define THREADS 1000
#define STACK (64 << 10)

static pthread_barrier_t all_run, all_end;

static void *run(void *unused) {
    (void)unused;
    pthread_barrier_wait(&all_run);
    pthread_barrier_wait(&all_end);
    return NULL;
}

/* A thread that allocates is one that counts; the compiler may not leave the pair out. */
static void *park(void *unused) {
    void *volatile block = malloc(10);
    free(block);
    for (;;) pause();
    return unused;
}

static void callers(int error) {
    pthread_t parked;
    CHECK(pthread_create(&parked, NULL, park, NULL) == 0);
    if (error != 0) refuse_threads(error);
    /* A process that is younger keeps what it has freed. */
    sleep_ms(1000);
    size_t before = rss_kib();
    size_t full = dirty(64);
    size_t left = rss_kib();
    printf("before_kib=%zu full_kib=%zu left_kib=%zu\n", before, full, left);
}

/* Joining a thread frees the thread-local storage of older ones, under a lock of the C library, if
 * GLIBC_TUNABLES makes it keep few stacks. */
static void loader(bool alone) {
    static pthread_t threads[THREADS];
    static char *blocks[FALL / BLOCK];
    const size_t count = sizeof blocks / sizeof *blocks;
    pthread_t parked;
    pthread_attr_t attributes;
    CHECK(pthread_create(&parked, NULL, park, NULL) == 0);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, STACK) == 0);
    pthread_barrier_init(&all_run, NULL, THREADS + 1);
    pthread_barrier_init(&all_end, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &attributes, run, NULL) == 0);
    pthread_barrier_wait(&all_run);
    if (!alone) {
        for (size_t i = 0; i < count; i++) blocks[i] = malloc(BLOCK);
        for (size_t i = LEFT / BLOCK; i < count; i++) free(blocks[i]);
    }
    pthread_barrier_wait(&all_end);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("joined\n");
}

/* The child has its parent's memory and threads in its records, but its own process number. */
static void in_vfork(void) {
    pthread_t parked;
    CHECK(pthread_create(&parked, NULL, park, NULL) == 0);
    sleep_ms(50);
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        dirty(64);
        _exit(tasks() - 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    printf("child=%d\n", WEXITSTATUS(status));
}

#define SLEEPERS_BLOCKS 400

static atomic_int turn;

/* Fills its cache with freed blocks, sleeps, and uses the cache again. */
static void *sleeper(void *unused) {
    static char *blocks[SLEEPERS_BLOCKS];
    (void)unused;
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < SLEEPERS_BLOCKS; i++) {
            blocks[i] = malloc(200);
            memset(blocks[i], i, 200);
        }
        for (int i = 0; i < SLEEPERS_BLOCKS; i++) {
            CHECK(blocks[i][0] == (char)i && blocks[i][199] == (char)i);
            free(blocks[i]);
        }
        atomic_store(&turn, round);
        while (round == 1 && atomic_load(&turn) != -1) sleep_ms(5);
    }
    return NULL;
}

static void asleep(int looks) {
    pthread_t thread;
    uint64_t emptied = 0, epoch = 1;
    size_t length = sizeof emptied;
    CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
    while (atomic_load(&turn) != 1) sleep_ms(5);
    dirty(8);
    for (int i = 0; i < looks && emptied == 0; i++) {
        sleep_ms(20);
        CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
        CHECK(mallctl("stats.work.caches_emptied", &emptied, &length, NULL, 0) == 0);
    }
    atomic_store(&turn, -1);
    CHECK(pthread_join(thread, NULL) == 0);
    printf("emptied=%d\n", emptied > 0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "idle") == 0) idle();
    if (strcmp(what, "refused") == 0) refused();
    if (strcmp(what, "seccomp") == 0) seccomp();
    if (strcmp(what, "loader") == 0) loader(argc > 2 && strcmp(argv[2], "alone") == 0);
    if (strcmp(what, "vfork") == 0) in_vfork();
    if (strcmp(what, "callers") == 0) callers(argc > 2 ? atoi(argv[2]) : 0);
    if (strcmp(what, "asleep") == 0) asleep(argc > 2 ? atoi(argv[2]) : 0);
    if (strcmp(what, "last") == 0) {
        dirty(8);
        pthread_exit(NULL);
    }
    if (strcmp(what, "exit") == 0) dirty(8);
    return 0;
}
