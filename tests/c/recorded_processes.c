/* Processes that profiles and recordings have to cope with: what happens is what the first argument says. */
#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "lumalloc.h"
#include "proc_common.h"

/* The library is preloaded. */
#pragma weak lumalloc_monitor_start
#pragma weak lumalloc_monitor_stop
#pragma weak mallctl

enum { BLOCKS = 100, FOREIGN = 32 << 20 };
static void *volatile kept[BLOCKS];

__attribute__((noinline)) static void keeps_blocks(void) {
    for (int i = 0; i < BLOCKS; i++) kept[i] = malloc(1000);
}

static void dump(const char *name) { CHECK(mallctl("prof.dump", NULL, NULL, &name, sizeof name) == 0); }

static size_t number(const char *key) {
    size_t value = 0, length = sizeof value;
    uint64_t epoch = 1;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    CHECK(mallctl(key, &value, &length, NULL, 0) == 0);
    return value;
}

/* Whether the first thread has ended, and has left nothing. */
static bool has_first_ended(void) {
    char byte;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    CHECK(maps >= 0);
    bool is_empty = read(maps, &byte, 1) <= 0;
    close(maps);
    return is_empty;
}

/* Goes on after the first thread. */
static void *goes_on(void *unused) {
    (void)unused;
    while (!has_first_ended()) usleep(1000);
    keeps_blocks();
    dump("heap");
    dump("heap.pb.gz");
    CHECK(lumalloc_monitor_start("events") == 0);
    keeps_blocks();
    CHECK(lumalloc_monitor_stop() == 0);
    char *foreign = mmap(NULL, FOREIGN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(foreign != MAP_FAILED);
    memset(foreign, 1, FOREIGN);
    say("rss=%zu\n", number("stats.rss.process"));
    exit(0);
}

/* A child of a process that keeps a log, for which each of many frees would need memory. */
static void logs_in_child(void) {
    enum { PAIRS = 200000 };
    const char *name = "child.json";
    CHECK(mallctl("prof.log_start", NULL, NULL, NULL, 0) == 0);
    keeps_blocks();
    for (int i = 0; i < BLOCKS; i++) free(kept[i]);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        size_t before = number("stats.metadata");
        for (int i = 0; i < PAIRS; i++) free(kept[0] = malloc(64));
        CHECK(number("stats.metadata") < before + PAIRS);
        CHECK(mallctl("prof.log_stop", NULL, NULL, NULL, 0) == EAGAIN);
        CHECK(mallctl("prof.log_start", NULL, NULL, &name, sizeof name) == 0);
        CHECK(mallctl("prof.log_stop", NULL, NULL, NULL, 0) == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(mallctl("prof.log_stop", NULL, NULL, NULL, 0) == 0);
}

/* Lines before and behind profiles, of which the second goes to a name of the same file. */
static void dumps_to_output(void) {
    say("before\n");
    dump("/dev/stdout");
    say("between\n");
    dump("output");
    say("behind\n");
}

/* A process that the system does not let open its own memory, by what it does itself. */
static void may_not_be_read(void) {
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
    if (getuid() == 0) {
        CHECK(chmod(".", 0777) == 0);
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    }
    CHECK(open("/proc/self/mem", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
    keeps_blocks();
    dump("heap.pb.gz");
}

/* How many descriptors lead to the unfinished recording. */
static int descriptors_of_recording(void) {
    int found = 0;
    char path[64], target[4096];
    for (int number = 0; number < 4096; number++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", number);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = 0;
        found += strstr(target, "/events.tmp") != NULL;
    }
    return found;
}

/* A child of a process that is recorded, and one that becomes another program. */
static void forks_while_recorded(void) {
    CHECK(lumalloc_monitor_start("events") == 0);
    CHECK(descriptors_of_recording() == 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(descriptors_of_recording() == 0);
        CHECK(lumalloc_monitor_start("child.events") == 0 && lumalloc_monitor_stop() == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(descriptors_of_recording() == 1);
    keeps_blocks();
    CHECK(lumalloc_monitor_stop() == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (strcmp(argv[1], "first-ends") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, goes_on, NULL) == 0);
        pthread_exit(NULL);
    }
    if (strcmp(argv[1], "logs-in-child") == 0) return logs_in_child(), 0;
    if (strcmp(argv[1], "may-not-be-read") == 0) return may_not_be_read(), 0;
    if (strcmp(argv[1], "forks-while-recorded") == 0) return forks_while_recorded(), 0;
    if (strcmp(argv[1], "dumps-to-output") == 0) return dumps_to_output(), 0;
    return 2;
}
