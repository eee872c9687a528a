/* What mallctl answers to every combination of buffers, by kind of key. jemalloc 5.3.0 answers the
   same where it does not die. */
#include <stdbool.h>
#include "api_check.h"

static int call(const char *name, bool old, size_t *length, bool new_value, size_t new_length)
{
  unsigned char bytes[16], value[16] = {0};
  int code;
  KEEPS_ERRNO(code = mallctl(name, old ? bytes : NULL, length, new_value ? value : NULL,
                             new_length));
  return code;
}

/* Reads: the length, another one, one half of the pair, neither. */
static void is_read(const char *name, size_t size)
{
  static const size_t OTHER[] = {0, 1, 3, 4, 7, 8, 9, 16};
  size_t at, length = size;
  CHECK(call(name, true, &length, false, 0) == 0 && length == size);
  for (at = 0; at < sizeof OTHER / sizeof OTHER[0]; at++) {
    length = OTHER[at];
    if (length == size) continue;
    CHECK(call(name, true, &length, false, 0) == EINVAL);
    CHECK(length == (OTHER[at] < size ? OTHER[at] : size));
  }
  length = 77;
  CHECK(call(name, false, &length, false, 0) == 0 && length == 77);
  CHECK(call(name, true, NULL, false, 0) == 0);
  CHECK(call(name, false, NULL, false, 0) == 0);
}

static void read_only(const char *name, size_t size)
{
  is_read(name, size);
  CHECK(call(name, false, NULL, true, size) == EPERM);
  CHECK(call(name, false, NULL, true, 3) == EPERM);
  CHECK(call(name, false, NULL, false, size) == EPERM);
}

static void read_and_written(const char *name, size_t size)
{
  is_read(name, size);
  CHECK(call(name, false, NULL, true, size + 1) == EINVAL);
  CHECK(call(name, false, NULL, true, 3) == EINVAL);
  CHECK(call(name, false, NULL, false, size) == 0);
}

static void written_only(const char *name, size_t size)
{
  size_t length = size;
  CHECK(call(name, true, &length, false, 0) == EPERM && length == size);
  CHECK(call(name, true, NULL, false, 0) == EPERM);
  CHECK(call(name, false, &length, false, 0) == EPERM);
  CHECK(call(name, true, &length, true, size) == EPERM);
  CHECK(call(name, false, NULL, false, 0) == EINVAL);
  CHECK(call(name, false, NULL, false, size) == EINVAL);
  CHECK(call(name, false, NULL, true, size + 1) == EINVAL);
}

static void action(const char *name)
{
  size_t length = 8;
  CHECK(call(name, true, &length, false, 0) == EPERM && length == 8);
  CHECK(call(name, true, NULL, false, 0) == EPERM);
  CHECK(call(name, false, &length, false, 0) == EPERM);
  CHECK(call(name, false, NULL, true, 8) == EPERM);
  CHECK(call(name, false, NULL, false, 8) == EPERM);
  CHECK(call(name, false, NULL, false, 0) == 0);
}

/* Makes something: only if the answer has a place. */
static void creation(const char *name, size_t size)
{
  size_t length = size + 4;
  CHECK(call(name, true, &length, false, 0) == EINVAL && length == 0);
  length = 1;
  CHECK(call(name, true, &length, false, 0) == EINVAL && length == 0);
  length = size;
  CHECK(call(name, false, &length, false, 0) == EINVAL && length == 0);
#ifndef FOREIGN /* jemalloc dies of it */
  CHECK(call(name, false, NULL, false, 0) == EINVAL);
  CHECK(call(name, true, NULL, false, 0) == EINVAL);
#endif
  length = size;
  CHECK(call(name, true, &length, false, 0) == 0 && length == size);
}

/* A pointer comes in while an index is read. */
static void question(void)
{
  void *held = malloc(10), *nothing = &held;
  unsigned arena = 4095;
  size_t length = sizeof arena;
  CHECK(mallctl("arenas.lookup", &arena, &length, &held, sizeof held) == 0);
  CHECK(length == sizeof arena && arena < 4095);
  CHECK(mallctl("arenas.lookup", &arena, &length, &held, 3) == EINVAL);
  length = 1;
  CHECK(mallctl("arenas.lookup", &arena, &length, &held, sizeof held) == EINVAL && length == 1);
#ifndef FOREIGN /* jemalloc dies of these */
  length = sizeof arena;
  CHECK(mallctl("arenas.lookup", &arena, &length, &nothing, sizeof nothing) == EINVAL);
  CHECK(mallctl("arenas.lookup", &arena, &length, NULL, 0) == EINVAL);
#endif
  (void)nothing;
  free(held);
}

static void mibs(void)
{
  size_t mib[8] = {0}, depth = 8, size, length = sizeof size;
  CHECK(mallctlnametomib("arenas.bin.0.size", mib, &depth) == 0 && depth == 4);
  CHECK(mallctlbymib(mib, depth, &size, &length, NULL, 0) == 0 && size == 8);
  mib[2] = 1;
  CHECK(mallctlbymib(mib, depth, &size, &length, NULL, 0) == 0 && size == 16);
  CHECK(mallctlbymib(mib, depth - 1, &size, &length, NULL, 0) == ENOENT);
  mib[2] = 100;
  CHECK(mallctlbymib(mib, depth, &size, &length, NULL, 0) == ENOENT);
  depth = 2;
  CHECK(mallctlnametomib("arenas.bin", mib, &depth) == 0 && depth == 2);
  depth = 8;
  CHECK(mallctlnametomib("arenas.bin", mib, &depth) == 0 && depth == 2);
  CHECK(mallctlbymib(mib, depth, &size, &length, NULL, 0) == ENOENT);
  depth = 2;
  CHECK(mallctlnametomib("arenas.bin.0.nonsense", mib, &depth) == 0 && depth == 2);
  depth = 8;
  CHECK(mallctlnametomib("arenas.bin.0.nonsense", mib, &depth) == ENOENT);
#ifndef FOREIGN /* jemalloc dies of it */
  depth = 8;
  CHECK(mallctlnametomib("version", mib, &depth) == 0 && depth == 1);
  mib[1] = 0;
  CHECK(mallctlbymib(mib, 2, &size, &length, NULL, 0) == ENOENT);
#endif
}

int main(void)
{
  read_only("version", sizeof(char *));
  read_only("arenas.narenas", sizeof(unsigned));
  read_only("arenas.bin.0.nregs", sizeof(uint32_t));
  read_only("opt.retain", sizeof(bool));
  read_only("opt.dirty_decay_ms", sizeof(size_t));
  read_only("stats.allocated", sizeof(size_t));
  read_only("stats.arenas.0.bins.0.nmalloc", sizeof(uint64_t));
  read_only("stats.arenas.0.bins.0.mutex.max_num_thds", sizeof(uint32_t));
  read_only("stats.arenas.4096.pactive", sizeof(size_t));
  read_only("arena.0.initialized", sizeof(bool));
  read_only("arena.4096.initialized", sizeof(bool));
  read_only("arena.4097.initialized", sizeof(bool));
  read_and_written("epoch", sizeof(uint64_t));
  read_and_written("background_thread", sizeof(bool));
  read_and_written("max_background_threads", sizeof(size_t));
  read_and_written("arenas.dirty_decay_ms", sizeof(size_t));
  read_and_written("arena.0.muzzy_decay_ms", sizeof(size_t));
  read_and_written("arena.0.dss", sizeof(char *));
  action("arena.0.purge");
  action("arena.0.decay");
  action("arena.4096.purge");
  action("thread.tcache.flush");
  creation("arenas.create", sizeof(unsigned));
  read_and_written("thread.arena", sizeof(unsigned));
  read_and_written("thread.tcache.enabled", sizeof(bool));
  read_only("thread.allocated", sizeof(uint64_t));
  read_only("thread.allocatedp", sizeof(uint64_t *));
  creation("tcache.create", sizeof(unsigned));
  written_only("tcache.flush", sizeof(unsigned));
  written_only("tcache.destroy", sizeof(unsigned));
  question();
  mibs();
  puts("ok");
  return 0;
}
