/* A program with threads that enters a sandbox: from then on the system ends it at each system call that its arguments
 * do not name, but for those that the program itself needs. It says which call that was. Then it takes more than the
 * library takes without looking at the container's bound, moves a block, makes an arena, and waits until the cache
 * of a thread that sleeps is emptied.
 * With the argument "exit", a child of it exits in a sandbox that refuses to tell of descriptors, as that of sshd does,
 * and ends it if it asks for their flags. */
#include "proc_common.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define KILL_AT(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define REFUSE_AT(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES)

static void exit_in_child(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_AT(SYS_fcntl), REFUSE_AT(SYS_newfstatat), REFUSE_AT(SYS_fstat),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

#ifndef SYS_readlink
#define SYS_readlink SYS_readlinkat
#endif

#define NAMED(call) {#call, SYS_##call}
static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    NAMED(brk), NAMED(clock_gettime), NAMED(clone), NAMED(clone3), NAMED(close), NAMED(exit), NAMED(fcntl),
    NAMED(fstat), NAMED(futex), NAMED(getpid), NAMED(getrandom), NAMED(gettid), NAMED(madvise), NAMED(membarrier),
    NAMED(mincore), NAMED(mmap), NAMED(mprotect), NAMED(mremap), NAMED(munmap), NAMED(openat), NAMED(prctl),
    NAMED(prlimit64), NAMED(read), NAMED(readlink), NAMED(rseq), NAMED(rt_sigprocmask), NAMED(sched_getaffinity),
    NAMED(sched_yield), NAMED(set_robust_list), NAMED(tgkill), NAMED(uname),
};
enum { CALLS = sizeof calls / sizeof *calls };

/* What the program needs for itself: to sleep, to write, to exit and to tell of a refused call. */
static const unsigned own_calls[] = {SYS_clock_nanosleep, SYS_write, SYS_exit_group, SYS_rt_sigreturn};
enum { OWN_CALLS = sizeof own_calls / sizeof *own_calls };

static unsigned number_of(const char *name) {
    for (int i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0) return calls[i].number;
    say("proc_sandbox.c does not know the call %s\n", name);
    exit(2);
}

static void tell_of_call(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    const char *name = "another one";
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == (unsigned)info->si_syscall) name = calls[i].name;
    say("refused: %s, %d\n", name, info->si_syscall);
    _exit(3);
}

static void allow(struct sock_filter *steps, size_t *length, unsigned call) {
    steps[(*length)++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    steps[(*length)++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

static void enter(int count, char **names) {
    struct sigaction action = {.sa_sigaction = tell_of_call, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    struct sock_filter steps[2 * (CALLS + OWN_CALLS) + 2];
    CHECK(count <= CALLS);
    size_t length = 0;
    steps[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < OWN_CALLS; i++) allow(steps, &length, own_calls[i]);
    for (int i = 0; i < count; i++) allow(steps, &length, number_of(names[i]));
    steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {(unsigned short)length, steps};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* Of all threads. */
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

static _Atomic int is_ready;

/* Leaves blocks in its cache, and sleeps for ever. */
static void *sleep_beside(void *unused) {
    enum { MANY = 400 };
    static void *blocks[MANY];
    for (int i = 0; i < MANY; i++) CHECK((blocks[i] = malloc(100)) != NULL);
    for (int i = 0; i < MANY; i++) free(blocks[i]);
    is_ready = 1;
    for (;;) sleep_ms(1000);
    return unused;
}

static void move(void) {
    enum { STEP = 1000000, STEPS = 80 };
    char *block = NULL;
    for (size_t i = 1; i <= STEPS; i++) {
        block = realloc(block, i * STEP);
        CHECK(block != NULL);
        memset(block, 1, 1000);
    }
    free(block);
}

static void make_arena(void) {
    unsigned arena;
    size_t length = sizeof arena;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
}

static bool is_cache_emptied(void) {
    uint64_t count, epoch = 1;
    size_t length = sizeof count;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    CHECK(mallctl("stats.work.caches_emptied", &count, &length, NULL, 0) == 0);
    return count > 0;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "exit") == 0) {
        exit_in_child();
        return 0;
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sleep_beside, NULL) == 0);
    while (!is_ready) sleep_ms(1);
    enter(count - 1, arguments + 1);
    for (int round = 0; round < 3; round++) rise_and_fall();
    move();
    make_arena();
    /* No cache keeps blocks of this size, so each takes a slow path, where a pass may be made. */
    while (!is_cache_emptied()) {
        free(marked(100000, 1));
        sleep_ms(5);
    }
    say("done\n");
    return 0;
}
