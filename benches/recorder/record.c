/* Records what a program asks of malloc, preloaded in front of the C library's own.
 *
 *   LUMALLOC_RECORD=FILE      a file that the runner made: a page of counters, then room for events
 *   LUMALLOC_RECORD_OF=NAME   only processes of this name (as /proc/self/comm has it); others run as usual
 *
 * The file is mapped, shared: nothing has to run when the program ends or is killed. Events stand in
 * the order in which they took effect: a free is written before the block is given back, an allocation
 * after it was made, and a realloc holds the lock over both, so an address is never seen twice. When
 * the room is used up, what comes later is only counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

enum op { OP_MALLOC = 1, OP_CALLOC = 2, OP_REALLOC = 3, OP_ALIGNED = 4, OP_FREE = 5 };

/* 24 bytes; benches/src/traces/raw.rs reads them. */
struct event {
    uint64_t address;
    uint64_t other; /* of a realloc the old address, of an aligned allocation the alignment */
    uint64_t what;  /* op in the low 4 bits, thread in the next 16, size above */
};

struct head {
    _Atomic uint64_t events, allocations, bytes, threads, lost;
};

#define HEAD_SIZE 4096

static struct head *head;
static struct event *events;
static uint64_t room;
static atomic_int state; /* 0 not asked yet, 1 being asked, 2 off, 3 on */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread uint32_t thread_number __attribute__((tls_model("initial-exec")));

static void map_file(void) {
    struct stat status;
    const char *path = getenv("LUMALLOC_RECORD"), *only = getenv("LUMALLOC_RECORD_OF");
    if (path == NULL || (only != NULL && strcmp(only, program_invocation_short_name) != 0)) return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &status) == 0 && status.st_size >= HEAD_SIZE) {
        void *map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map != MAP_FAILED) {
            head = map;
            events = (struct event *)((char *)map + HEAD_SIZE);
            room = ((uint64_t)status.st_size - HEAD_SIZE) / sizeof *events;
        }
    }
    close(file);
}

/* Is this process recorded? The first call decides, once the environment can be read. */
static int is_on(void) {
    int now = atomic_load(&state), fresh = 0;
    if (now == 0 && environ != NULL && atomic_compare_exchange_strong(&state, &fresh, 1)) {
        map_file();
        atomic_store(&state, head == NULL ? 2 : 3);
        now = atomic_load(&state);
    }
    return now == 3;
}

static uint64_t this_thread(void) {
    if (thread_number == 0) thread_number = (uint32_t)atomic_fetch_add(&head->threads, 1) + 1;
    return thread_number - 1;
}

/* With the lock held. */
static void append(enum op op, void *address, uint64_t other, size_t size) {
    if (op != OP_FREE) {
        head->allocations++;
        head->bytes += size;
    }
    uint64_t index = head->events, thread = this_thread();
    if (index >= room) {
        head->lost++;
        return;
    }
    uint64_t what = (uint64_t)op | (thread & 0xffff) << 4 | (uint64_t)size << 20;
    events[index] = (struct event){(uintptr_t)address, other, what};
    head->events = index + 1;
}

static void *noted(enum op op, void *block, uint64_t other, size_t size) {
    if (block != NULL && is_on()) {
        pthread_mutex_lock(&lock);
        append(op, block, other, size);
        pthread_mutex_unlock(&lock);
    }
    return block;
}

void *malloc(size_t size) {
    return noted(OP_MALLOC, __libc_malloc(size), 0, size);
}

void *calloc(size_t count, size_t size) {
    return noted(OP_CALLOC, __libc_calloc(count, size), 0, count * size);
}

void free(void *block) {
    int error = errno;
    if (block == NULL) return;
    noted(OP_FREE, block, 0, 0);
    __libc_free(block);
    errno = error;
}

void *realloc(void *block, size_t size) {
    if (block == NULL) return malloc(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    if (!is_on()) return __libc_realloc(block, size);
    pthread_mutex_lock(&lock);
    void *moved = __libc_realloc(block, size);
    if (moved != NULL) append(OP_REALLOC, moved, (uintptr_t)block, size);
    pthread_mutex_unlock(&lock);
    return moved;
}

void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

void *memalign(size_t alignment, size_t size) {
    return noted(OP_ALIGNED, __libc_memalign(alignment, size), alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

void *valloc(size_t size) {
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

/* A program linked to another allocator would ask that one about blocks that are the C library's. */
size_t malloc_usable_size(void *block) {
    static size_t (*_Atomic theirs)(void *);
    if (theirs == NULL) {
        void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        theirs = (size_t(*)(void *))(library == NULL ? NULL : dlsym(library, "malloc_usable_size"));
        if (theirs == NULL) abort();
    }
    return theirs(block);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *block = memalign(alignment, size);
    if (block == NULL) return ENOMEM;
    *out = block;
    return 0;
}
