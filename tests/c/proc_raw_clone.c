/* A thread made by clone(2) with thread-local storage of its own, which the C library does not
 * know: no destructor runs at its end. Its storage is unmapped then; after that the library counts
 * the threads of each arena, and switches a mode in all threads. x86-64 and glibc alone. */
#include "proc_common.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { STACK = 256 << 10, STORAGE = 64 << 10, BLOCKS = 200 };

/* The thread's own record in glibc begins with these; the rest is set by the library. */
struct head {
    void *self_block;
    void *vector;
    void *self;
    int many_threads;
    uintptr_t vsyscall;
    uintptr_t stack_guard;
    uintptr_t pointer_guard;
};

extern void *_dl_allocate_tls(void *block) __attribute__((weak));

static struct head *own_head(void) {
    struct head *head;
    __asm__("mov %%fs:0x10, %0" : "=r"(head));
    return head;
}

static struct head *make_storage(char *pages) {
    struct head *head = (struct head *)(pages + STORAGE / 2);
    CHECK(_dl_allocate_tls != NULL && _dl_allocate_tls(head) == head);
    head->self_block = head->self = head;
    head->many_threads = 1;
    head->stack_guard = own_head()->stack_guard;
    head->pointer_guard = own_head()->pointer_guard;
    return head;
}

static int work(void *argument) {
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = marked(8 + (size_t)i * 97, 0x5C);
    for (int i = 0; i < BLOCKS; i++) check_and_free(blocks[i], 8 + (size_t)i * 97, 0x5C);
    (void)argument;
    syscall(SYS_exit, 0);
    return 0;
}

/* Waits until the system has cleared the word: the thread is gone. */
static void join(atomic_int *running) {
    int now;
    while ((now = atomic_load(running)) != 0) syscall(SYS_futex, running, FUTEX_WAIT, now, NULL);
}

static void run_one(void) {
    char *storage = private_pages(STORAGE);
    char *stack = private_pages(STACK);
    static atomic_int running;
    atomic_store(&running, 1);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_CHILD_CLEARTID;
    struct head *head = make_storage(storage);
    int made = clone(work, stack + STACK, flags, NULL, NULL, head, &running);
    CHECK(made > 0);
    join(&running);
    CHECK(munmap(storage, STORAGE) == 0 && munmap(stack, STACK) == 0);
}

int main(void) {
    free(marked(100, 1));
    for (int i = 0; i < 8; i++) run_one();
    uint64_t epoch = 1;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    unsigned alive;
    size_t size = sizeof alive;
    CHECK(mallctl("stats.arenas.4096.nthreads", &alive, &size, NULL, 0) == 0);
    bool junk = true;
    CHECK(mallctl("fill.junk_allocated", NULL, NULL, &junk, sizeof junk) == 0);
    unsigned char *block = malloc(100);
    CHECK(block != NULL && block[99] == 0xA5);
    free(block);
    say("alive=%u\n", alive);
    return 0;
}
