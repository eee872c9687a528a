/* A program with two threads that enters a sandbox: from then on the system ends it if it opens a file or starts a
 * thread. Then it allocates and frees more than the library takes without looking at the container's bound.
 * With an argument, a child of it exits in a sandbox that refuses to tell of descriptors, as that of sshd does, and
 * ends it if it asks for their flags. */
#include "proc_common.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define KILL_AT(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static _Atomic int is_ready, is_over;

static void *other(void *unused) {
    free(malloc(100));
    is_ready = 1;
    while (!is_over) usleep(1000);
    return unused;
}

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

static void enter(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_AT(SYS_openat), KILL_AT(SYS_readlinkat), KILL_AT(SYS_clone), KILL_AT(SYS_clone3),
#ifdef SYS_open
        KILL_AT(SYS_open), KILL_AT(SYS_readlink),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* Of all threads. */
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) {
        exit_in_child();
        return 0;
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other, NULL) == 0);
    while (!is_ready) usleep(1000);
    enter();
    for (int round = 0; round < 3; round++) rise_and_fall();
    is_over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    say("done\n");
    return 0;
}
