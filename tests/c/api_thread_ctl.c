/* thread.*, tcache.*, fill.*: the rules of jemalloc(3), by its own interface. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api_check.h"

#define READ(name, place)                                                      \
  do {                                                                         \
    size_t length_ = sizeof *(place);                                          \
    KEEPS_ERRNO(CHECK(mallctl(name, place, &length_, NULL, 0) == 0));          \
    CHECK(length_ == sizeof *(place));                                         \
  } while (0)
#define WRITE(name, place) mallctl(name, NULL, NULL, place, sizeof *(place))

/* Hides a block from the compiler, which drops pairs of malloc and free. */
static void *opaque_block(void *block)
{
  __asm__ volatile("" : "+r"(block) : : "memory");
  return block;
}

static void volumes(void)
{
  uint64_t before, after, *allocated, *deallocated, *again;
  void *block;
  READ("thread.allocated", &before);
  block = mallocx(1000, 0);
  READ("thread.allocated", &after);
  CHECK(after - before == sallocx(block, 0));
  READ("thread.deallocated", &before);
  dallocx(block, 0);
  READ("thread.deallocated", &after);
  CHECK(after - before == nallocx(1000, 0));
  CHECK(WRITE("thread.allocated", &before) == EPERM);
  READ("thread.allocatedp", &allocated);
  READ("thread.deallocatedp", &deallocated);
  READ("thread.allocatedp", &again);
  CHECK(allocated == again && allocated != deallocated);
  before = *allocated;
  block = malloc(100000);
  CHECK(*allocated - before == malloc_usable_size(block));
  before = *deallocated;
  free(block);
  CHECK(*deallocated - before == nallocx(100000, 0));
  READ("thread.allocated", &after);
  CHECK(after == *allocated);
}

static void *other_cells(void *mine)
{
  uint64_t *allocated;
  READ("thread.allocatedp", &allocated);
  CHECK(allocated != mine);
  return NULL;
}

static void arenas(void)
{
  unsigned home, created, arena, none = 4000, limit;
  size_t length = sizeof home;
  void *block;
  READ("thread.arena", &home);
  READ("arenas.narenas", &limit);
  CHECK(WRITE("thread.arena", &none) == EFAULT);
  READ("arenas.create", &created);
  CHECK(mallctl("thread.arena", &arena, &length, &created, sizeof created) == 0 && arena == home);
  READ("thread.arena", &arena);
  CHECK(arena == created);
  block = malloc(5000);
  length = sizeof arena;
  CHECK(mallctl("arenas.lookup", &arena, &length, &block, sizeof block) == 0);
  CHECK(arena == created);
  free(block);
  block = malloc(1 << 20);
  CHECK(mallctl("arenas.lookup", &arena, &length, &block, sizeof block) == 0);
  CHECK(arena == created);
  free(block);
  CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
  {
    char name[64];
    snprintf(name, sizeof name, "arena.%u.destroy", created);
    CHECK(mallctl(name, NULL, NULL, NULL, 0) == EFAULT); /* a thread is bound to it */
    CHECK(WRITE("thread.arena", &home) == 0);
    CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
    CHECK(mallctl(name, NULL, NULL, NULL, 0) == 0);
    CHECK(WRITE("thread.arena", &created) == EFAULT);
  }
}

static void own_cache(void)
{
  bool off = false, on = true, was;
  size_t length = sizeof was, size, count;
  const char *text;
  READ("thread.tcache.enabled", &was);
  CHECK(was);
  CHECK(mallctl("thread.tcache.enabled", &was, &length, &off, sizeof off) == 0 && was);
  CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == EFAULT);
  text = "8-64:9";
  CHECK(WRITE("thread.tcache.ncached_max.write", &text) == ENOENT);
  CHECK(WRITE("thread.tcache.enabled", &on) == 0);
  CHECK(WRITE("thread.tcache.ncached_max.write", &text) == 0);
  size = 50, length = sizeof count;
  CHECK(mallctl("thread.tcache.ncached_max.read_sizeclass", &count, &length, &size, sizeof size)
        == 0 && count == 9);
  CHECK(mallctl("thread.tcache.ncached_max.read_sizeclass", &count, &length, NULL, 0) == EINVAL);
  size = 1 << 20;
  CHECK(mallctl("thread.tcache.ncached_max.read_sizeclass", &count, &length, &size, sizeof size)
        == EINVAL);
  text = "8-64";
  CHECK(WRITE("thread.tcache.ncached_max.write", &text) == EINVAL);
  size = 1000;
  CHECK(WRITE("thread.tcache.max", &size) == 0);
  READ("thread.tcache.max", &size);
  CHECK(size == 1024);
  size = (size_t)-1;
  CHECK(WRITE("thread.tcache.max", &size) == 0);
  READ("thread.tcache.max", &size);
  CHECK(size == 32768);
  CHECK(mallctl("thread.idle", NULL, NULL, NULL, 0) == 0);
}

static void peak(void)
{
  uint64_t peak;
  CHECK(mallctl("thread.peak.reset", NULL, NULL, NULL, 0) == 0);
  READ("thread.peak.read", &peak);
  CHECK(peak == 0);
  free(opaque_block(malloc(3 << 20)));
  READ("thread.peak.read", &peak);
  CHECK(peak == 3 << 20);
}

static void explicit_caches(void)
{
  unsigned first, second, none = 4093;
  size_t length = sizeof first;
  void *block, *again;
  CHECK(mallctl("tcache.create", NULL, NULL, NULL, 0) == EINVAL);
  CHECK(mallctl("tcache.create", &first, &length, &none, sizeof none) == EPERM);
  READ("tcache.create", &first);
  READ("tcache.create", &second);
  CHECK(first != second);
  KEEPS_ERRNO(block = mallocx(700, MALLOCX_TCACHE(first)));
  KEEPS_ERRNO(sdallocx(block, 700, MALLOCX_TCACHE(first)));
  again = mallocx(700, MALLOCX_TCACHE(second));
  CHECK(block != again);
  CHECK(mallocx(700, MALLOCX_TCACHE(first)) == block);
  KEEPS_ERRNO(block = rallocx(block, 2000, MALLOCX_TCACHE(first)));
  KEEPS_ERRNO(dallocx(block, MALLOCX_TCACHE(first)));
  KEEPS_ERRNO(dallocx(again, MALLOCX_TCACHE_NONE));
  CHECK(WRITE("tcache.flush", &first) == 0);
  CHECK(WRITE("tcache.destroy", &first) == 0 && WRITE("tcache.destroy", &second) == 0);
  CHECK(WRITE("tcache.destroy", &second) == EFAULT);
  CHECK(WRITE("tcache.flush", &none) == EFAULT);
  CHECK(mallctl("tcache.flush", &first, &length, NULL, 0) == EPERM);
  FAILS_WITH(EINVAL, mallocx(700, MALLOCX_TCACHE(second)));
  KEEPS_ERRNO(block = mallocx(700, MALLOCX_ARENA(0)));
  KEEPS_ERRNO(dallocx(block, MALLOCX_TCACHE(none)));
}

static void *filled(void *stop)
{
  while (!__atomic_load_n((bool *)stop, __ATOMIC_ACQUIRE)) free(opaque_block(malloc(48)));
  unsigned char *block = malloc(48);
  CHECK(block[0] == 0xa5 && block[47] == 0xa5);
  free(block);
  return NULL;
}

static void fill_at_run_time(void)
{
  bool on = true, off = false, now, stop = false;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, filled, &stop) == 0);
  CHECK(WRITE("fill.junk_allocated", &on) == 0);
  READ("fill.junk_allocated", &now);
  CHECK(now);
  __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(WRITE("fill.zero", &on) == 0);
  CHECK(is_zero(opaque_block(malloc(5000)), 5000));
  CHECK(WRITE("fill.zero", &off) == 0 && WRITE("fill.junk_allocated", &off) == 0);
}

/* The child of a fork has this thread's caches, those of its other arenas too. */
static void forked(void)
{
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(30);
    volumes();
    arenas();
    explicit_caches();
    fill_at_run_time();
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
  uint64_t *mine;
  pthread_t thread;
  peak();
  own_cache();
  arenas();
  explicit_caches();
  fill_at_run_time();
  volumes();
  READ("thread.allocatedp", &mine);
  CHECK(pthread_create(&thread, NULL, other_cells, mine) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  arenas();
  explicit_caches();
  forked();
  puts("ok");
  return 0;
}
