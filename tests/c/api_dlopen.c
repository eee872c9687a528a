/*
 * The library opened by dlopen, path in argv[1], in a process whose own allocator is glibc's: its
 * TLS word fits into what the loader keeps for such libraries, its functions work beside glibc's,
 * on threads too, and dlclose does not unmap it (threads that used it exit later).
 */
#include <dlfcn.h>
#include <pthread.h>
#include "api_check.h"

/* Static TLS of the program's own: less is left for others. */
static __thread char own_tls[64 << 10];

static void *(*their_malloc)(size_t);
static void (*their_free)(void *);
static size_t (*their_usable_size)(void *);
static int (*their_mallctl)(const char *, void *, size_t *, void *, size_t);
static pthread_barrier_t both;

static void use(unsigned seed)
{
  enum { COUNT = 500 };
  static __thread void *blocks[COUNT];
  size_t at;
  for (at = 0; at < COUNT; at++) {
    blocks[at] = their_malloc(at * 50);
    CHECK(blocks[at] != NULL && their_usable_size(blocks[at]) >= at * 50);
    fill(blocks[at], at * 50, seed);
  }
  for (at = 0; at < COUNT; at++) {
    CHECK(is_filled(blocks[at], at * 50, seed));
    their_free(blocks[at]);
  }
}

static void *thread(void *argument)
{
  own_tls[0] = 1;
  use((unsigned)(uintptr_t)argument);
  pthread_barrier_wait(&both); /* used; now main calls dlclose */
  pthread_barrier_wait(&both); /* closed; the library's exit function runs at the end */
  return NULL;
}

static void *symbol(void *library, const char *name)
{
  void *address = dlsym(library, name);
  CHECK(address != NULL);
  return address;
}

int main(int count, char **arguments)
{
  pthread_t other;
  const char *version = NULL;
  size_t length = sizeof version;
  void *library, *ours = malloc(100);
  CHECK(count == 2);
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  *(void **)&their_malloc = symbol(library, "malloc");
  *(void **)&their_free = symbol(library, "free");
  *(void **)&their_usable_size = symbol(library, "malloc_usable_size");
  *(void **)&their_mallctl = symbol(library, "mallctl");
  CHECK(their_malloc != malloc);
  CHECK(their_mallctl("version", &version, &length, NULL, 0) == 0 && version != NULL);
  use(1);
  CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
  CHECK(pthread_create(&other, NULL, thread, (void *)(uintptr_t)2) == 0);
  pthread_barrier_wait(&both);
  CHECK(dlclose(library) == 0);
  pthread_barrier_wait(&both);
  CHECK(pthread_join(other, NULL) == 0);
  use(3); /* still mapped */
  free(ours);
  puts("ok");
  return 0;
}
