/* What the process tests share: memory figures read without malloc, and a way to fail. */
#ifndef PROC_COMMON_H
#define PROC_COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Ends the process with a message; never through malloc. */
#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            char text_[256];                                                          \
            int length_ = snprintf(text_, sizeof text_, "%s:%d: %s (errno %d)\n",     \
                                   __FILE__, __LINE__, #condition, errno);            \
            if (write(2, text_, (size_t)length_) < 0) _exit(2);                       \
            _exit(1);                                                                 \
        }                                                                             \
    } while (0)

/* One line on standard output, without stdio's buffers. */
__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    CHECK(write(1, text, (size_t)length) == length);
}

/* Allocates blocks of a MiB, writes to them and frees them, and then makes calls that take slow paths. */
__attribute__((unused)) static void rise_and_fall(void) {
    enum { MANY = 128 };
    char *blocks[MANY];
    for (int i = 0; i < MANY; i++) {
        blocks[i] = malloc(1 << 20);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, 1 << 20);
    }
    for (int i = 0; i < MANY; i++) free(blocks[i]);
    for (int i = 0; i < 1000; i++) free(malloc(3000 + (size_t)i * 16));
}

/* The field `name` of a file like /proc/self/status, in KiB. */
__attribute__((unused)) static size_t kib_of(const char *path, const char *name) {
    static _Thread_local char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    size_t length = 0;
    ssize_t got;
    while ((got = read(file, text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
    close(file);
    text[length] = 0;
    char *field = strstr(text, name);
    CHECK(field != NULL);
    return strtoul(field + strlen(name), NULL, 10);
}

/* Resident now; exact. */
#define rss_kib() kib_of("/proc/self/smaps_rollup", "\nRss:")
/* The peak of this program image; the exec before it does not count, as it would in ru_maxrss. */
#define peak_rss_kib() kib_of("/proc/self/status", "\nVmHWM:")

__attribute__((unused)) static void sleep_ms(unsigned milliseconds) {
    struct timespec left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0) CHECK(errno == EINTR);
}

__attribute__((unused)) static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A small generator, so that runs repeat: state must not be 0. */
__attribute__((unused)) static uint32_t next_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* A block of `size` that carries `mark` at its begin and its end, and the check of it. */
__attribute__((unused)) static unsigned char *marked(size_t size, unsigned char mark) {
    unsigned char *block = malloc(size);
    CHECK(block != NULL);
    block[0] = mark;
    block[size - 1] = mark;
    return block;
}

__attribute__((unused)) static void check_and_free(unsigned char *block, size_t size,
                                                   unsigned char mark) {
    CHECK(block[0] == mark && block[size - 1] == mark);
    free(block);
}

/* Memory that is none of the allocator's business. */
__attribute__((unused)) static void *private_pages(size_t bytes) {
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    return pages;
}

/* Locks the memory that is there and that will be there, under no limit. Returns whether the user may do so. */
__attribute__((unused)) static bool locks_everything(void) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        /* Without a limit to lock under, only a user whom no limit binds may. */
        CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
        limit.rlim_cur = 0;
        CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0) return true;
    CHECK(errno == EPERM || errno == ENOMEM);
    return false;
}

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

/* How many background threads the library has, as its keys say. */
__attribute__((unused)) static size_t library_threads(void) {
    uint64_t epoch = 1;
    size_t count, length = sizeof count;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    CHECK(mallctl("stats.background_thread.num_threads", &count, &length, NULL, 0) == 0);
    return count;
}

#endif
