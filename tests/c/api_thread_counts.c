/* What a realloc counts in thread.allocated and thread.deallocated: nothing while the block stays as
   long as it is, else the new block as allocated and the old one as freed, moved or not. (jemalloc
   counts both always; the difference of the two is the same.) */
#include "api_check.h"

static uint64_t allocated, deallocated;

static uint64_t read_count(const char *name)
{
  uint64_t count = 0;
  size_t length = sizeof count;
  CHECK(mallctl(name, &count, &length, NULL, 0) == 0);
  return count;
}

/* What was counted since the last call. */
static void counted(size_t more_allocated, size_t more_deallocated)
{
  uint64_t before = allocated, before_freed = deallocated;
  allocated = read_count("thread.allocated");
  deallocated = read_count("thread.deallocated");
  CHECK(allocated - before == more_allocated);
  CHECK(deallocated - before_freed == more_deallocated);
}

/* The shortest class of a kind that has so many bytes, or 0. */
static size_t class_of(const char *count, const char *kind, size_t bytes)
{
  size_t length, class;
  unsigned classes, n;
  char name[40];
  length = sizeof classes;
  CHECK(mallctl(count, &classes, &length, NULL, 0) == 0);
  for (n = 0; n < classes; n++) {
    snprintf(name, sizeof name, "arenas.%s.%u.size", kind, n);
    length = sizeof class;
    CHECK(mallctl(name, &class, &length, NULL, 0) == 0);
    if (class >= bytes) return class;
  }
  return 0;
}

/* The bytes that are counted for a block: the usable ones. In the hardened tier all of its class;
   of a small one without the last 8, which are its canary. */
static size_t volume(size_t usable)
{
  bool hardened;
  size_t length = sizeof hardened, class;
  CHECK(mallctl("opt.hardened", &hardened, &length, NULL, 0) == 0);
  if (!hardened) return usable;
  class = class_of("arenas.nbins", "bin", usable + 8);
  return class ? class - 8 : class_of("arenas.nlextents", "lextent", usable);
}

static void check(size_t size, size_t longer)
{
  size_t had, has, turn;
  char *block = malloc(size);
  had = malloc_usable_size(block);
  allocated = read_count("thread.allocated");
  deallocated = read_count("thread.deallocated");
  /* Within its class: not by one byte. */
  for (turn = 0; turn < 3; turn++) {
    block = realloc(block, turn % 2 ? size : had);
    CHECK(block != NULL && malloc_usable_size(block) == had);
    block = rallocx(block, had, turn % 2 ? MALLOCX_ZERO : 0);
    CHECK(block != NULL && xallocx(block, size, 0, 0) == had);
    counted(0, 0);
  }
  /* To another length, in place or not, and back. */
  block = realloc(block, longer);
  has = malloc_usable_size(block);
  CHECK(block != NULL && has > had);
  counted(volume(has), volume(had));
  block = realloc(block, size);
  had = malloc_usable_size(block);
  CHECK(block != NULL && had < has);
  counted(volume(had), volume(has));
  free(block);
  counted(0, volume(had));
}

int main(void)
{
  check(100, 1000);
  check(5000, 20000);
  check(20000, 100000);
  check(100000, 300000);
  check(100000, 400000);
  check(1 << 20, 3 << 20);
  check(8 << 20, 16 << 20);
  puts("ok");
  return 0;
}
