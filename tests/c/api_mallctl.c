/* mallctl: the rules for names, MIBs, lengths and directions; the snapshot. */
#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include "api_check.h"

static size_t read_size(const char *name)
{
  size_t value = 0, length = sizeof value;
  KEEPS_ERRNO(CHECK(mallctl(name, &value, &length, NULL, 0) == 0));
  CHECK(length == sizeof value);
  return value;
}

static uint64_t refresh(void)
{
  uint64_t epoch = 1;
  size_t length = sizeof epoch;
  CHECK(mallctl("epoch", &epoch, &length, &epoch, sizeof epoch) == 0);
  return epoch;
}

static void names(void)
{
  static const char *const WRONG[] = {
      "", "nothing", "stats", "stats.", ".stats", "stats.allocated.more", "epoch.", "arena.0",
      "arena.0.nothing", "arena.99999.purge", "thread.tcache", "Version"};
  size_t at, value, length;
  for (at = 0; at < sizeof WRONG / sizeof WRONG[0]; at++) {
    length = sizeof value;
    KEEPS_ERRNO(CHECK(mallctl(WRONG[at], &value, &length, NULL, 0) == ENOENT));
  }
#ifndef FOREIGN /* jemalloc dies of the first two, and takes the others for arena 0 */
  CHECK(mallctl(NULL, &value, &length, NULL, 0) == EINVAL);
  CHECK(mallctlnametomib("version", NULL, &length) == EINVAL);
  CHECK(mallctl("arena.x.purge", NULL, NULL, NULL, 0) == ENOENT);
  CHECK(mallctl("arena..purge", NULL, NULL, NULL, 0) == ENOENT);
  CHECK(mallctl("arena.-1.purge", NULL, NULL, NULL, 0) == ENOENT);
#endif
}

static void values(void)
{
  static const char *const STATS[] = {"stats.allocated", "stats.active", "stats.metadata",
                                      "stats.resident", "stats.mapped"};
  const char *version = NULL;
  unsigned narenas = 0;
  size_t length = sizeof version, at;
  void *held = malloc(100000);
  CHECK(mallctl("version", &version, &length, NULL, 0) == 0 && length == sizeof version);
  CHECK(version != NULL && strchr(version, '.') != NULL);
  length = sizeof narenas;
  CHECK(mallctl("arenas.narenas", &narenas, &length, NULL, 0) == 0);
  CHECK(narenas >= 1 && narenas < 4096);
  refresh();
  for (at = 0; at < sizeof STATS / sizeof STATS[0]; at++) CHECK(read_size(STATS[at]) > 0);
  (void)read_size("stats.retained");
  CHECK(read_size("stats.allocated") <= read_size("stats.active"));
  CHECK(read_size("stats.active") <= read_size("stats.resident"));
  free(held);
}

static void lengths(void)
{
  unsigned char bytes[16];
  uint64_t epoch = refresh(), again;
  size_t length, at, wrong[] = {0, 1, 4, 7, 9, 16};
  for (at = 0; at < sizeof wrong / sizeof wrong[0]; at++) {
    size_t copied = wrong[at] < 8 ? wrong[at] : 8;
    memset(bytes, 0xee, sizeof bytes);
    length = wrong[at];
    CHECK(mallctl("epoch", bytes, &length, NULL, 0) == EINVAL);
    CHECK(length == copied && memcmp(bytes, &epoch, copied) == 0 && bytes[copied] == 0xee);
    if (wrong[at] != 0) CHECK(mallctl("epoch", NULL, NULL, bytes, wrong[at]) == EINVAL);
  }
  length = sizeof again;
  CHECK(mallctl("epoch", &again, &length, NULL, 0) == 0 && again == epoch);
  /* One half of the pair missing: nothing is read, and that is no error. */
  again = 77;
  CHECK(mallctl("epoch", &again, NULL, NULL, 0) == 0 && again == 77);
  CHECK(mallctl("epoch", NULL, &length, NULL, 0) == 0);
  CHECK(mallctl("epoch", NULL, NULL, NULL, 0) == 0);
}

static void directions(void)
{
  size_t value = 1, length = sizeof value;
  bool flag = true, old = true;
  CHECK(mallctl("stats.allocated", NULL, NULL, &value, sizeof value) == EPERM);
  CHECK(mallctl("version", &value, &length, &value, sizeof value) == EPERM);
  CHECK(mallctl("arenas.narenas", NULL, NULL, NULL, 4) == EPERM);
  CHECK(mallctl("arena.0.purge", &value, &length, NULL, 0) == EPERM);
  CHECK(mallctl("arena.0.purge", NULL, &length, NULL, 0) == EPERM);
  CHECK(mallctl("arena.0.purge", NULL, NULL, &value, sizeof value) == EPERM);
  CHECK(mallctl("thread.tcache.flush", &value, &length, NULL, 0) == EPERM);
  CHECK(mallctl("thread.tcache.flush", NULL, NULL, &value, sizeof value) == EPERM);
  /* background_thread: the old value comes out, a write of what is so succeeds. */
  length = sizeof old;
  flag = false;
  CHECK(mallctl("background_thread", &old, &length, &flag, sizeof flag) == 0 && !old);
  CHECK(mallctl("background_thread", NULL, NULL, &value, sizeof value) == EINVAL);
#ifndef FOREIGN
  flag = true;
  CHECK(mallctl("background_thread", NULL, NULL, &flag, sizeof flag) == 0);
  flag = false;
  CHECK(mallctl("background_thread", &old, &length, &flag, sizeof flag) == 0 && old);
  CHECK(mallctl("background_thread", &old, &length, NULL, 0) == 0 && !old);
  /* max_background_threads: from 1 to what the option allows. */
  value = 0;
  CHECK(mallctl("max_background_threads", NULL, NULL, &value, sizeof value) == EINVAL);
  value = 5;
  CHECK(mallctl("max_background_threads", NULL, NULL, &value, sizeof value) == EINVAL);
  value = 2;
  CHECK(mallctl("max_background_threads", NULL, NULL, &value, sizeof value) == 0);
  length = sizeof value;
  CHECK(mallctl("max_background_threads", &value, &length, NULL, 0) == 0 && value == 2);
  CHECK(mallctl("opt.max_background_threads", &value, &length, NULL, 0) == 0 && value == 4);
  value = 1;
#endif
}

static void epochs(void)
{
  uint64_t first = refresh();
  size_t before, after, big = (size_t)10 << 20;
  char *block;
  CHECK(refresh() == first + 1);
  before = read_size("stats.zero_reallocs");
  free(realloc(malloc(100), opaque(0)));
  CHECK(read_size("stats.zero_reallocs") == before + 1); /* no snapshot: at once */
  before = read_size("stats.allocated");
  block = malloc(big);
  memset(block, 1, big);
  CHECK(read_size("stats.allocated") == before); /* the snapshot stands */
  refresh();
  after = read_size("stats.allocated");
  CHECK(after >= before + big && after < before + big * 2);
  CHECK(read_size("stats.active") >= after);
  free(block);
  refresh();
  CHECK(read_size("stats.allocated") < after - big / 2);
}

static void mibs(void)
{
  size_t mib[8], whole[3], length, value, valuelen = sizeof value;
  uint64_t number = 1;
  length = 8;
  KEEPS_ERRNO(CHECK(mallctlnametomib("stats.allocated", mib, &length) == 0));
  CHECK(length == 2);
  refresh();
  CHECK(mallctlbymib(mib, 2, &value, &valuelen, NULL, 0) == 0);
  CHECK(value == read_size("stats.allocated"));
  CHECK(mallctlbymib(mib, 1, &value, &valuelen, NULL, 0) == ENOENT);
  mib[1] = 100000;
  CHECK(mallctlbymib(mib, 2, &value, &valuelen, NULL, 0) == ENOENT);
  mib[0] = SIZE_MAX;
  CHECK(mallctlbymib(mib, 2, &value, &valuelen, NULL, 0) == ENOENT);

  /* Integer components are themselves. */
  length = 3;
  CHECK(mallctlnametomib("arena.0.purge", whole, &length) == 0 && length == 3 && whole[1] == 0);
  CHECK(mallctlbymib(whole, 3, NULL, NULL, NULL, 0) == 0);
  whole[1] = MALLCTL_ARENAS_ALL;
  CHECK(mallctlbymib(whole, 3, NULL, NULL, NULL, 0) == 0);
  whole[1] = 5000;
  CHECK(mallctlbymib(whole, 3, NULL, NULL, NULL, 0) == ENOENT);

  /* Less room: the beginning; a shorter name: its length. */
  memset(mib, 0xee, sizeof mib);
  length = 2;
  CHECK(mallctlnametomib("arena.0.purge", mib, &length) == 0 && length == 2);
  CHECK(mib[0] == whole[0] && mib[1] == 0 && mib[2] == (size_t)0xeeeeeeeeeeeeeeee);
  length = 8;
  CHECK(mallctlnametomib("stats", mib, &length) == 0 && length == 1);
  length = 8;
  CHECK(mallctlnametomib("nothing", mib, &length) == ENOENT && length == 8);
  CHECK(mallctlnametomib("version.more", mib, &length) == ENOENT);
  length = 1;
  CHECK(mallctlnametomib("epoch", mib, &length) == 0);
  CHECK(mallctlbymib(mib, 1, NULL, NULL, &number, sizeof number) == 0);
#ifndef FOREIGN /* jemalloc crashes */
  mib[1] = 0;
  CHECK(mallctlbymib(mib, 2, NULL, NULL, NULL, 0) == ENOENT);
  CHECK(mallctlbymib(mib, 0, NULL, NULL, NULL, 0) == ENOENT);
  memset(mib, 0, sizeof mib);
  CHECK(mallctlbymib(mib, 8, NULL, NULL, NULL, 0) == ENOENT);
#endif
}

static void actions(void)
{
  enum { COUNT = 256 };
  void *blocks[COUNT];
  unsigned narenas = 0;
  size_t length = sizeof narenas, held, at;
  char name[64];
  for (at = 0; at < COUNT; at++) blocks[at] = memset(malloc(200000), 1, 200000);
  for (at = 0; at < COUNT; at++) free(blocks[at]);
  refresh();
  held = read_size("stats.resident");
  CHECK(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
  CHECK(mallctl("arenas.narenas", &narenas, &length, NULL, 0) == 0);
  /* Redis says "all" by the number of arenas. */
  snprintf(name, sizeof name, "arena.%u.purge", narenas);
  CHECK(mallctl(name, NULL, 0, NULL, 0) == 0);
  refresh();
  CHECK(held - read_size("stats.resident") > (size_t)COUNT * 200000 / 2);
  CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
  snprintf(name, sizeof name, "arena.%u.purge", narenas + 1);
  CHECK(mallctl(name, NULL, NULL, NULL, 0) == ENOENT);
}

static void in_a_child(void)
{
  int status = 0;
  pid_t child;
  void *held = malloc(1000);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    uint64_t epoch = refresh();
    CHECK(refresh() == epoch + 1 && read_size("stats.allocated") > 0);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  free(held);
}

int main(void)
{
  names();
  values();
  lengths();
  directions();
  epochs();
  mibs();
  actions();
  in_a_child();
  puts("ok");
  return 0;
}
