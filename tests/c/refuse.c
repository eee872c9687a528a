/* A shared object that refuses system calls. Preloaded before the allocator's library, it takes the
 * place of the C library's wrappers, and has calls of one kind fail as the kernel would:
 *
 *   REFUSE=KIND          madvise, madvise:ADVICE (a number: that advice alone), mmap, munmap,
 *                        mremap, mprotect, mincore, membarrier, close_range, prctl, sbrk, or any of
 *                        these;
 *                        process_vm_readv, sched_getaffinity, rename, getcwd, readlink, open and
 *                        read of files of /proc, seals (fcntl with F_ADD_SEALS)
 *   REFUSE_EVERY=N       every N-th of these calls fails (1: all of them)
 *   REFUSE_AFTER=K       the first K of them pass (0)
 *   REFUSE_MOST=M        after M that failed all pass (no bound)
 *
 * Without REFUSE it refuses nothing. Two threads may call sbrk at once, as the C library's own sbrk
 * does not allow. Calls that the C library makes inside itself are not seen here. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "raw_call.h"

static const char *kind = "";
static long advice = -1;
static long every;
static long after;
static long most = LONG_MAX;
static atomic_long calls;
static atomic_long refused;

/* The value of NAME=VALUE, if `entry` is that. */
static const char *value_of(const char *entry, const char *name) {
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : NULL;
}

static void read_variable(const char *entry) {
    const char *value;
    if ((value = value_of(entry, "REFUSE_EVERY")) != NULL) every = atol(value);
    if ((value = value_of(entry, "REFUSE_AFTER")) != NULL) after = atol(value);
    if ((value = value_of(entry, "REFUSE_MOST")) != NULL) most = atol(value);
    if ((value = value_of(entry, "REFUSE")) == NULL) return;
    kind = value;
    if (strncmp(value, "madvise:", 8) == 0) {
        kind = "madvise";
        advice = atol(value + 8);
    }
}

static atomic_bool has_begun;

__attribute__((constructor)) static void begin(void) {
    atomic_store(&has_begun, true);
    for (char **entry = environ; *entry != NULL; entry++) read_variable(*entry);
}

/* How many calls were refused so far; for the program, if it asks. */
long refused_calls(void) { return atomic_load(&refused); }

static bool is_counted(const char *name) {
    if (every <= 0 || strcmp(kind, name) != 0) return false;
    long call = atomic_fetch_add(&calls, 1) + 1 - after;
    if (call <= 0 || call % every != 0 || atomic_load(&refused) >= most) return false;
    atomic_fetch_add(&refused, 1);
    return true;
}

static bool is_refused(const char *name) {
    return is_counted(strcmp(kind, "any") == 0 ? kind : name);
}

static long refuse(int error) {
    errno = error;
    return -1;
}

int madvise(void *at, size_t length, int which) {
    if ((advice < 0 || advice == which) && is_refused("madvise")) return (int)refuse(ENOMEM);
    return (int)told(raw(SYS_madvise, (long)at, (long)length, which, 0, 0, 0));
}

void *mmap(void *at, size_t length, int access, int flags, int file, off_t offset) {
    if (is_refused("mmap")) return (void *)refuse(ENOMEM);
    return (void *)told(raw(SYS_mmap, (long)at, (long)length, access, flags, file, offset));
}

void *mmap64(void *at, size_t length, int access, int flags, int file, off64_t offset) {
    return mmap(at, length, access, flags, file, offset);
}

int munmap(void *at, size_t length) {
    if (is_refused("munmap")) return (int)refuse(ENOMEM);
    return (int)told(raw(SYS_munmap, (long)at, (long)length, 0, 0, 0, 0));
}

void *mremap(void *at, size_t length, size_t new_length, int flags, ...) {
    va_list list;
    va_start(list, flags);
    long to = flags & MREMAP_FIXED ? (long)va_arg(list, void *) : 0;
    va_end(list);
    if (is_refused("mremap")) return (void *)refuse(ENOMEM);
    return (void *)told(raw(SYS_mremap, (long)at, (long)length, (long)new_length, flags, to, 0));
}

int mprotect(void *at, size_t length, int access) {
    if (is_refused("mprotect")) return (int)refuse(ENOMEM);
    return (int)told(raw(SYS_mprotect, (long)at, (long)length, access, 0, 0, 0));
}

int mincore(void *at, size_t length, unsigned char *pages) {
    if (is_refused("mincore")) return (int)refuse(ENOMEM);
    return (int)told(raw(SYS_mincore, (long)at, (long)length, (long)pages, 0, 0, 0));
}

int prctl(int option, ...) {
    long more[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++) more[i] = va_arg(list, long);
    va_end(list);
    if (is_refused("prctl")) return (int)refuse(EPERM);
    return (int)told(raw(SYS_prctl, option, more[0], more[1], more[2], more[3], 0));
}

void *sbrk(intptr_t increment) {
    static atomic_flag moving = ATOMIC_FLAG_INIT;
    if (increment != 0 && is_refused("sbrk")) return (void *)refuse(ENOMEM);
    while (atomic_flag_test_and_set(&moving)) continue;
    long before = raw(SYS_brk, 0, 0, 0, 0, 0, 0);
    long now = increment == 0 ? before : raw(SYS_brk, before + increment, 0, 0, 0, 0, 0);
    atomic_flag_clear(&moving);
    return now == before + increment ? (void *)before : (void *)refuse(ENOMEM);
}

ssize_t process_vm_readv(pid_t process, const struct iovec *to, unsigned long count,
                         const struct iovec *from, unsigned long from_count, unsigned long flags) {
    if (is_counted("process_vm_readv")) return refuse(EPERM);
    return told(raw(SYS_process_vm_readv, process, (long)to, (long)count, (long)from,
                    (long)from_count, (long)flags));
}

/* As where the system has room for more CPUs than the set. */
int sched_getaffinity(pid_t process, size_t length, cpu_set_t *set) {
    if (is_counted("sched_getaffinity")) return (int)refuse(EINVAL);
    long written = told(raw(SYS_sched_getaffinity, process, (long)length, (long)set, 0, 0, 0));
    if (written < 0) return -1;
    memset((char *)set + written, 0, length - (size_t)written);
    return 0;
}

int rename(const char *from, const char *to) {
    if (is_counted("rename")) return (int)refuse(EACCES);
    return (int)told(raw(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0, 0));
}

ssize_t readlink(const char *path, char *buffer, size_t length) {
    if (is_counted("readlink")) return refuse(EACCES);
    return told(raw(SYS_readlinkat, AT_FDCWD, (long)path, (long)buffer, (long)length, 0, 0));
}

/* The file of /proc that was opened last. */
static atomic_int of_proc = -1;

/* The library opens and reads files by system call, and membarrier has no wrapper. */
long syscall(long number, ...) {
    long more[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) more[i] = va_arg(list, long);
    va_end(list);
    bool is_of_proc = number == SYS_openat && strncmp((const char *)more[1], "/proc/", 6) == 0;
    /* The allocator's constructors, which run before the one here, may begin a recording. */
    if (number == SYS_membarrier && !atomic_load(&has_begun)) begin();
    if (number == SYS_membarrier && is_refused("membarrier")) return refuse(ENOSYS);
    if (number == SYS_close_range && is_refused("close_range")) return refuse(ENOSYS);
    if (is_of_proc && is_counted("open")) return refuse(EACCES);
    if (number == SYS_read && more[0] == atomic_load(&of_proc) && is_counted("read")) return refuse(EIO);
    long result = told(raw(number, more[0], more[1], more[2], more[3], more[4], more[5]));
    if (is_of_proc) atomic_store(&of_proc, (int)result);
    return result;
}

char *getcwd(char *buffer, size_t length) {
    bool is_there = !is_counted("getcwd");
    if (!is_there) errno = ENOENT;
    return is_there && told(raw(SYS_getcwd, (long)buffer, (long)length, 0, 0, 0, 0)) >= 0 ? buffer : NULL;
}

/* Each command has at most one argument, which fits a word. */
int fcntl(int file, int command, ...) {
    va_list list;
    va_start(list, command);
    long more = va_arg(list, long);
    va_end(list);
    if (command == F_ADD_SEALS && is_counted("seals")) return (int)refuse(EPERM);
    return (int)told(raw(SYS_fcntl, file, command, more, 0, 0, 0));
}

int fcntl64(int file, int command, ...) {
    va_list list;
    va_start(list, command);
    long more = va_arg(list, long);
    va_end(list);
    return fcntl(file, command, more);
}
