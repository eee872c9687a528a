/* Ways to leave memory unused that are no frees of a thread with a cache, or that have the background
 * thread look at the wrong time. argv[1] names the way. Afterwards all threads sleep, and the memory has
 * to go back by itself. */
#include "proc_common.h"

void *mallocx(size_t size, int flags) __attribute__((weak));
size_t xallocx(void *block, size_t size, size_t extra, int flags) __attribute__((weak));

enum { MANY = 64, LONG = 1 << 20, SHORT = 70000, SMALL = 1000, SMALL_COUNT = 48 << 10 };

static unsigned char *blocks[SMALL_COUNT];
static pthread_barrier_t begun;

static void *sleeper(void *has_cache) {
    if (has_cache != NULL) free(marked(100, 1));
    pthread_barrier_wait(&begun);
    for (;;) pause();
    return NULL;
}

static void start_sleeper(void) {
    pthread_t thread;
    pthread_barrier_init(&begun, NULL, 2);
    CHECK(pthread_create(&thread, NULL, sleeper, &begun) == 0);
    pthread_barrier_wait(&begun);
}

static void fill_long(int flags) {
    for (int i = 0; i < MANY; i++) {
        blocks[i] = flags == 0 ? malloc(LONG) : mallocx(LONG, flags);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, LONG);
    }
}

static void fill_small(int from, int to) {
    for (int i = from; i < to; i++) blocks[i] = memset(marked(SMALL, 2), 2, SMALL);
}

static void free_small(int from, int to) {
    for (int i = from; i < to; i++) check_and_free(blocks[i], SMALL, 2);
}

static unsigned new_arena(void) {
    unsigned arena;
    size_t length = sizeof arena;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
    return arena;
}

static void *free_long(void *unused) {
    for (int i = 0; i < MANY; i++) free(blocks[i]);
    pthread_barrier_wait(&begun);
    for (;;) pause();
    return unused;
}

static void *fill_and_free(void *unused) {
    fill_small(SMALL_COUNT / 2, SMALL_COUNT);
    free_small(SMALL_COUNT / 2, SMALL_COUNT);
    return unused;
}

/* Blocks become shorter where they are. */
static void shrink(void) {
    start_sleeper();
    fill_long(0);
    for (int i = 0; i < MANY; i++) CHECK(realloc(blocks[i], SHORT) == blocks[i]);
}

static void shrink_by_xallocx(void) {
    start_sleeper();
    fill_long(0);
    for (int i = 0; i < MANY; i++) CHECK(xallocx(blocks[i], SHORT, 0, 0) < LONG);
}

/* A process with one thread, which gives back what it can at once. */
static void shrink_alone(void) {
    sleep_ms(300);
    fill_long(0);
    for (int i = 0; i < MANY; i++) CHECK(realloc(blocks[i], SHORT) == blocks[i]);
}

static void reset(void) {
    start_sleeper();
    unsigned arena = new_arena();
    /* MALLOCX_ARENA and MALLOCX_TCACHE_NONE */
    fill_long((int)((arena + 1) << 20 | 1 << 8));
    char name[50];
    snprintf(name, sizeof name, "arena.%u.reset", arena);
    CHECK(mallctl(name, NULL, NULL, NULL, 0) == 0);
}

/* An arena with a shorter decay time, in which nothing is unused. */
static void other_arena(void) {
    start_sleeper();
    char name[50];
    snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", new_arena());
    ssize_t millis = 20;
    CHECK(mallctl(name, NULL, NULL, &millis, sizeof millis) == 0);
    fill_small(0, SMALL_COUNT);
    free_small(0, SMALL_COUNT);
}

/* A thread that has no cache, because it only frees large blocks. */
static void only_frees(void) {
    start_sleeper();
    fill_long(0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_long, NULL) == 0);
    pthread_barrier_wait(&begun);
}

/* Threads that end. What is left is more than a third. */
static void ended(void) {
    sleep_ms(300);
    fill_small(0, SMALL_COUNT / 2);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fill_and_free, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* The second thread begins after the fall, which left more than a third. */
static void begun_late(void) {
    fill_small(0, SMALL_COUNT);
    free_small(SMALL_COUNT / 2, SMALL_COUNT);
    start_sleeper();
    free(malloc(100000));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {
        {"shrink", shrink},         {"xallocx", shrink_by_xallocx}, {"alone", shrink_alone},
        {"reset", reset},           {"other", other_arena},         {"frees", only_frees},
        {"ended", ended},           {"late", begun_late},
    };
    CHECK(argc == 2);
    size_t before = rss_kib();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(argv[1], ways[i].name) == 0) ways[i].run();
    }
    size_t used = strcmp(argv[1], "ended") == 0 || strcmp(argv[1], "late") == 0 ? SMALL_COUNT / 2 : 0;
    size_t most = before + used * SMALL / 1024 * 5 / 4 + (8 << 10) + MANY * (SHORT >> 10);
    for (int i = 0; rss_kib() > most; i++) {
        CHECK(i < 1200);
        sleep_ms(50);
    }
    say("given back\n");
    return 0;
}
