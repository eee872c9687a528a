/* Threads whose end the library cannot learn of. REFUSED in the environment names what fails: "key"
 * is pthread_key_create, "value" is pthread_setspecific. It is not an argument because the library
 * creates its key before main. Prints how many threads with a cache the library knows when all
 * threads but this one have ended. */
#include "proc_common.h"

#include <dlfcn.h>

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { THREADS = 64, BLOCKS = 200 };

static bool is_refused(const char *name) {
    const char *refused = getenv("REFUSED");
    return refused != NULL && strcmp(refused, name) == 0;
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    if (is_refused("key")) return EAGAIN;
    int (*real)(pthread_key_t *, void (*)(void *));
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_key_create");
    return real(key, destructor);
}

int pthread_setspecific(pthread_key_t key, const void *value) {
    if (is_refused("value")) return ENOMEM;
    int (*real)(pthread_key_t, const void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_setspecific");
    return real(key, value);
}

static _Atomic(unsigned char *) handed;

static void *work(void *argument) {
    unsigned char mark = (unsigned char)(uintptr_t)argument;
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = marked(8 + (size_t)i * 97, mark);
    unsigned char *other = atomic_exchange(&handed, marked(100, 0xA5));
    if (other != NULL) check_and_free(other, 100, 0xA5);
    for (int i = 0; i < BLOCKS; i++) check_and_free(blocks[i], 8 + (size_t)i * 97, mark);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    free(atomic_exchange(&handed, NULL));
    uint64_t epoch = 1;
    CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    unsigned alive;
    size_t size = sizeof alive;
    CHECK(mallctl("stats.arenas.4096.nthreads", &alive, &size, NULL, 0) == 0);
    say("alive=%u\n", alive);
    return 0;
}
