/* A program that runs until its standard input ends:
 *
 *   soak together   threads hand blocks to each other, others come and go, and the process forks
 *   soak arenas     threads make arenas, fill them, and destroy them with blocks in them
 *
 * Then it frees everything, purges once, and prints allocated_kib, rss_kib and rounds. */
#include <malloc.h>
#include <poll.h>

#include "proc_common.h"

enum { TRAFFIC = 3, SLOTS = 512, SHORT = 4, SHORT_BLOCKS = 300, ARENA_BLOCKS = 400 };
enum { NO_CACHE = 0x100, ARENA_SHIFT = 20 };
/* Seconds after which a child, or the end of the program, hangs: SIGALRM ends it. */
enum { HANGS = 300 };

int mallctl(const char *, void *, size_t *, void *, size_t);
void *mallocx(size_t, int);
void *rallocx(void *, size_t, int);
void dallocx(void *, int);

typedef struct {
    unsigned char *data;
    size_t size;
} Block;

static atomic_bool stop;
static atomic_long rounds;

/* Most blocks are small; one in 64 is long. */
static size_t random_size(uint32_t *state) {
    uint32_t random = next_random(state);
    if (random % 64 != 0) return 8 + random / 64 % 3000;
    return random / 64 % 8 == 0 ? (1 << 20) + random / 512 % (5 << 20) : random / 64 % 300000 + 20000;
}

/* The mark of a block comes from its size, so that whoever frees it can check it. */
static void mark(Block block) {
    block.data[0] = (unsigned char)(block.size * 37 + 1);
    block.data[block.size - 1] = block.data[0];
}

static void check(Block block) {
    unsigned char expected = (unsigned char)(block.size * 37 + 1);
    CHECK(block.data[0] == expected && block.data[block.size - 1] == expected);
}

static Block taken(uint32_t *state) {
    Block block = {NULL, random_size(state)};
    block.data = malloc(block.size);
    CHECK(block.data != NULL);
    mark(block);
    return block;
}

static void give(Block block) {
    if (block.data == NULL) return;
    check(block);
    free(block.data);
}

/* --- together --------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    Block block;
} slots[SLOTS];

static bool is_child;

/* In a child a lock that a thread of the parent held at the fork is never released: the block is
 * returned as it is. */
static Block exchange(size_t slot, Block block) {
    if (is_child) {
        if (pthread_mutex_trylock(&slots[slot].lock) != 0) return block;
    } else {
        pthread_mutex_lock(&slots[slot].lock);
    }
    Block before = slots[slot].block;
    slots[slot].block = block;
    pthread_mutex_unlock(&slots[slot].lock);
    return before;
}

static void *traffic(void *argument) {
    uint32_t state = (uint32_t)(uintptr_t)argument;
    while (!atomic_load(&stop)) {
        for (int i = 0; i < 1000; i++) give(exchange(next_random(&state) % SLOTS, taken(&state)));
        sleep_ms(1);
    }
    return NULL;
}

/* A short life: blocks of its own, and one for whoever frees it. */
static void *short_life(void *argument) {
    uint32_t state = (uint32_t)(uintptr_t)argument;
    Block blocks[SHORT_BLOCKS];
    for (int i = 0; i < SHORT_BLOCKS; i++) blocks[i] = taken(&state);
    give(exchange(next_random(&state) % SLOTS, taken(&state)));
    for (int i = 0; i < SHORT_BLOCKS; i++) give(blocks[i]);
    return NULL;
}

static void short_lives(uint32_t seed) {
    pthread_t threads[SHORT];
    for (uintptr_t i = 0; i < SHORT; i++) {
        void *argument = (void *)((seed * SHORT + i) * 2 + 1);
        CHECK(pthread_create(&threads[i], NULL, short_life, argument) == 0);
    }
    for (int i = 0; i < SHORT; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *lives(void *unused) {
    for (uint32_t seed = 1; !atomic_load(&stop); seed++) {
        short_lives(seed);
        atomic_fetch_add(&rounds, 1);
    }
    return unused;
}

/* A child uses the heap of its parent, has threads, and forks again. */
static void child(uint32_t seed) {
    is_child = true;
    alarm(HANGS);
    short_lives(seed);
    pid_t again = fork();
    CHECK(again >= 0);
    if (again == 0) {
        alarm(HANGS);
        short_life((void *)(uintptr_t)(seed | 1));
        _exit(0);
    }
    int status;
    CHECK(waitpid(again, &status, 0) == again && status == 0);
    _exit(0);
}

static void fork_once(uint32_t seed) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child(seed);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static bool is_told_to_end(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    bool is_told = poll(&input, 1, 50) > 0;
    if (is_told) alarm(HANGS);
    return is_told;
}

static void together(void) {
    pthread_t threads[TRAFFIC + 1];
    for (int i = 0; i < SLOTS; i++) CHECK(pthread_mutex_init(&slots[i].lock, NULL) == 0);
    for (uintptr_t i = 0; i < TRAFFIC; i++)
        CHECK(pthread_create(&threads[i], NULL, traffic, (void *)(i * 7919 + 1)) == 0);
    CHECK(pthread_create(&threads[TRAFFIC], NULL, lives, NULL) == 0);
    for (uint32_t seed = 1; !is_told_to_end(); seed++) fork_once(seed * 2654435761u | 1);
    atomic_store(&stop, true);
    for (int i = 0; i <= TRAFFIC; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < SLOTS; i++) give(slots[i].block);
}

/* --- arenas ----------------------------------------------------------------------------------- */

static void act(const char *format, unsigned arena) {
    char name[64];
    snprintf(name, sizeof name, format, arena);
    CHECK(mallctl(name, NULL, NULL, NULL, 0) == 0);
}

static void fill(Block *blocks, int flags, uint32_t *state) {
    for (int i = 0; i < ARENA_BLOCKS; i++) {
        blocks[i].size = random_size(state);
        blocks[i].data = mallocx(blocks[i].size, flags);
        CHECK(blocks[i].data != NULL);
        mark(blocks[i]);
    }
}

/* Half of them go or change their size; the rest stays until the arena ends. */
static void use(Block *blocks, int flags, uint32_t *state) {
    for (int i = 0; i < ARENA_BLOCKS; i += 2) {
        check(blocks[i]);
        if (next_random(state) % 2 == 0) {
            dallocx(blocks[i].data, flags);
            continue;
        }
        size_t size = random_size(state);
        unsigned char first = blocks[i].data[0];
        blocks[i].data = rallocx(blocks[i].data, size, flags);
        CHECK(blocks[i].data != NULL && blocks[i].data[0] == first);
    }
    for (int i = 1; i < ARENA_BLOCKS; i += 2) check(blocks[i]);
}

static void *arenas_come_and_go(void *argument) {
    uint32_t state = (uint32_t)(uintptr_t)argument;
    Block blocks[ARENA_BLOCKS];
    while (!atomic_load(&stop)) {
        unsigned arena;
        size_t length = sizeof arena;
        CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
        int flags = (int)((arena + 1) << ARENA_SHIFT) | NO_CACHE;
        fill(blocks, flags, &state);
        use(blocks, flags, &state);
        if (next_random(&state) % 4 == 0) {
            act("arena.%u.reset", arena);
            fill(blocks, flags, &state);
        }
        act("arena.%u.destroy", arena);
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

static void arenas(void) {
    pthread_t threads[TRAFFIC];
    for (uintptr_t i = 0; i < TRAFFIC; i++)
        CHECK(pthread_create(&threads[i], NULL, arenas_come_and_go, (void *)(i * 7919 + 1)) == 0);
    while (!is_told_to_end()) continue;
    atomic_store(&stop, true);
    for (int i = 0; i < TRAFFIC; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* --- the end ---------------------------------------------------------------------------------- */

static size_t allocated(void) {
    uint64_t epoch = 1;
    size_t bytes = 0, length = sizeof bytes;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    CHECK(mallctl("stats.allocated", &bytes, &length, NULL, 0) == 0);
    return bytes;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (strcmp(argv[1], "together") == 0) together();
    else if (strcmp(argv[1], "arenas") == 0) arenas();
    else CHECK(!"together or arenas");
    act("arena.%u.purge", 4096);
    say("rounds=%ld allocated_kib=%zu rss_kib=%zu\n", atomic_load(&rounds), allocated() >> 10,
        rss_kib());
    return 0;
}
