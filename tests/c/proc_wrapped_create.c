/* A program that keeps a list of its threads in a pthread_create of its own, under a lock that it also holds while it
 * frees much memory, as profilers and garbage collectors do. Prints what background_thread_auto reads in the end. */
#include "proc_common.h"
#include <dlfcn.h>

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void **arguments;
static size_t count;
static _Atomic int is_ready;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    static create_function *next;
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    pthread_mutex_lock(&lock);
    arguments = realloc(arguments, (count + 1) * sizeof *arguments);
    CHECK(arguments != NULL);
    arguments[count++] = argument;
    int status = next(thread, attributes, body, argument);
    pthread_mutex_unlock(&lock);
    return status;
}

static void *idle(void *unused) {
    free(malloc(100));
    is_ready = 1;
    while (is_ready) usleep(1000);
    return unused;
}

static void forget(void) {
    pthread_mutex_lock(&lock);
    rise_and_fall();
    pthread_mutex_unlock(&lock);
}

int main(void) {
    pthread_t thread;
    bool is_auto = true;
    size_t length = sizeof is_auto;
    CHECK(pthread_create(&thread, NULL, idle, NULL) == 0);
    while (!is_ready) usleep(1000);
    forget();
    is_ready = 0;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(mallctl("background_thread_auto", &is_auto, &length, NULL, 0) == 0);
    say("auto=%d\n", is_auto);
    return 0;
}
