/* A program for which the kernel refuses one kind of system call, and nothing else:
 *
 *   proc_one_call CALL ERROR early|late
 *
 * CALL is a name, ERROR the number of the error, which an answer of the kernel has. With "early" the call is refused
 * from before the library is loaded, else from after its first blocks and threads on, in all threads. Then the program
 * does what makes the library call the system, and looks at what its blocks hold. What the C library itself cannot do
 * then, such as to start a thread or to fork, is left out. */
#include "proc_common.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SYS_readlink
#define SYS_readlink SYS_readlinkat
#endif

#define NAMED(call) {#call, SYS_##call}
static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    NAMED(brk), NAMED(clock_gettime), NAMED(clone), NAMED(clone3), NAMED(close), NAMED(close_range), NAMED(fchmod),
    NAMED(fchown), NAMED(fcntl), NAMED(fstat), NAMED(fsync), NAMED(ftruncate), NAMED(getcwd), NAMED(getpid),
    NAMED(getrandom), NAMED(gettid), NAMED(lseek), NAMED(madvise), NAMED(membarrier), NAMED(memfd_create),
    NAMED(mincore), NAMED(mremap), NAMED(munlock), NAMED(munmap), NAMED(newfstatat), NAMED(openat), NAMED(pipe2),
    NAMED(prctl), NAMED(prlimit64), NAMED(process_vm_readv), NAMED(read), NAMED(readlink), NAMED(rename),
    NAMED(rseq), NAMED(rt_sigaction), NAMED(rt_sigprocmask), NAMED(rt_sigtimedwait), NAMED(sched_getaffinity),
    NAMED(sched_yield), NAMED(set_robust_list), NAMED(sigaltstack), NAMED(tgkill), NAMED(uname), NAMED(unlink),
    NAMED(write),
};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *refused;

static void refuse(int error) {
    for (int i = 0; i < CALLS; i++) {
        if (strcmp(calls[i].name, refused) != 0) continue;
        struct sock_filter steps[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
        return;
    }
    say("proc_one_call.c does not know the call %s\n", refused);
    exit(2);
}

/* Blocks that live from before the call is refused to the end. */
enum { KEPT = 600 };
static unsigned char *kept[KEPT];

static size_t kept_size(int i) {
    return 1 + (size_t)i * (size_t)i * 3;
}

static void take_kept(void) {
    for (int i = 0; i < KEPT; i++) kept[i] = marked(kept_size(i), (unsigned char)i);
}

static void free_kept(void) {
    for (int i = 0; i < KEPT; i++) check_and_free(kept[i], kept_size(i), (unsigned char)i);
}

static _Atomic int ready;
static _Atomic bool may_end;

/* Leaves blocks in its cache, and sleeps until the end. */
static void *sleep_beside(void *unused) {
    enum { MANY = 400 };
    void *blocks[MANY];
    for (int i = 0; i < MANY; i++) CHECK((blocks[i] = malloc(100)) != NULL);
    for (int i = 0; i < MANY; i++) free(blocks[i]);
    ready++;
    while (!may_end) sleep_ms(1);
    return unused;
}

/* Allocates, and frees what others allocated. */
static void *work(void *blocks) {
    for (int round = 0; round < 20; round++) {
        for (int i = 1; i < 200; i++) check_and_free(marked((size_t)i * 37, 7), (size_t)i * 37, 7);
        check_and_free(marked(300000, 8), 300000, 8);
    }
    for (unsigned char **block = blocks; *block != NULL; block++) check_and_free(*block, 500, 9);
    return NULL;
}

/* So much that memory is to be given back. */
static void take_and_give(void) {
    enum { MANY = 24 };
    unsigned char *blocks[MANY];
    for (int i = 0; i < MANY; i++) memset(blocks[i] = marked(1 << 20, 5), 5, 1 << 20);
    for (int i = 0; i < MANY; i++) check_and_free(blocks[i], 1 << 20, 5);
    for (int i = 0; i < 1000; i++) free(malloc(3000 + (size_t)i * 16));
}

static void start_and_join(void) {
    unsigned char *blocks[101];
    for (int i = 0; i < 100; i++) blocks[i] = marked(500, 9);
    blocks[100] = NULL;
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, blocks) == 0)
        CHECK(pthread_join(thread, NULL) == 0);
    else
        work(blocks);
}

static void fork_and_wait(void) {
    pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
        take_and_give();
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void grow(void) {
    enum { STEP = 1000000, STEPS = 20 };
    unsigned char *block = NULL;
    for (size_t i = 1; i <= STEPS; i++) {
        block = realloc(block, i * STEP);
        CHECK(block != NULL);
        block[i * STEP - 1] = (unsigned char)i;
        for (size_t j = 1; j <= i; j++) CHECK(block[j * STEP - 1] == j);
    }
    free(block);
}

static void allocate_zeroed(void) {
    for (int round = 0; round < 3; round++) {
        enum { SIZE = 3 << 20 };
        unsigned char *block = calloc(1, SIZE);
        CHECK(block != NULL);
        for (size_t i = 0; i < SIZE; i += 512) CHECK(block[i] == 0);
        memset(block, 1, SIZE);
        free(block);
    }
}

/* What the library answers may be an error. */
static void control(const char *name) {
    mallctl(name, NULL, NULL, NULL, 0);
}

static void use_arena(void) {
    unsigned arena, before;
    size_t length = sizeof arena;
    if (mallctl("arenas.create", &arena, &length, NULL, 0) != 0) return;
    if (mallctl("thread.arena", &before, &length, &arena, sizeof arena) == 0) {
        check_and_free(marked(3000000, 3), 3000000, 3);
        CHECK(mallctl("thread.arena", NULL, NULL, &before, sizeof before) == 0);
    }
    char name[64];
    for (const char **word = (const char *[]){"purge", "decay", "reset", "destroy", NULL}; *word != NULL; word++) {
        snprintf(name, sizeof name, "arena.%u.%s", arena, *word);
        control(name);
    }
}

__attribute__((weak)) void malloc_stats_print(void (*)(void *, const char *), void *, const char *);

static void drop(void *unused, const char *text) {
    (void)unused, (void)text;
}

static void observe(void) {
    uint64_t epoch = 1;
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    malloc_stats_print(drop, NULL, "J");
    control("prof.dump");
    control("arena.4096.purge");
}

static void switch_threads(void) {
    bool before, on = true;
    size_t length = sizeof before;
    if (mallctl("background_thread", &before, &length, NULL, 0) != 0) return;
    if (mallctl("background_thread", NULL, NULL, &on, sizeof on) != 0) return;
    mallctl("background_thread", NULL, NULL, &before, sizeof before);
}

static void run(void) {
    take_and_give();
    grow();
    allocate_zeroed();
    use_arena();
    start_and_join();
    fork_and_wait();
    observe();
    switch_threads();
    /* So that passes of decay are due. */
    for (int i = 0; i < 10; i++) {
        sleep_ms(2);
        check_and_free(marked(100000, 1), 100000, 1);
    }
    allocate_zeroed();
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    refused = arguments[1];
    bool is_begun = getenv("IS_BEGUN") != NULL;
    if (strcmp(arguments[3], "early") == 0 && !is_begun) {
        CHECK(setenv("IS_BEGUN", "1", 1) == 0);
        refuse(atoi(arguments[2]));
        execv("/proc/self/exe", arguments);
        CHECK(false);
    }
    take_kept();
    pthread_t threads[2];
    int begun = 0;
    while (begun < 2 && pthread_create(&threads[begun], NULL, sleep_beside, NULL) == 0) begun++;
    while (ready < begun) sleep_ms(1);
    if (!is_begun) refuse(atoi(arguments[2]));
    run();
    may_end = true;
    for (int i = 0; i < begun; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    free_kept();
    return 0;
}
