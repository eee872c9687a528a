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

/* The bytes that are counted for a block: the usable ones. Of a small one of the hardened tier, all
   of its class but the canary. */
static size_t volume(size_t usable)
{
  bool hardened;
  size_t length = sizeof hardened, class;
  unsigned bins, bin;
  char name[40];
  CHECK(mallctl("opt.hardened", &hardened, &length, NULL, 0) == 0);
  length = sizeof bins;
  CHECK(mallctl("arenas.nbins", &bins, &length, NULL, 0) == 0);
  for (bin = 0; hardened && bin < bins; bin++) {
    snprintf(name, sizeof name, "arenas.bin.%u.size", bin);
    length = sizeof class;
    CHECK(mallctl(name, &class, &length, NULL, 0) == 0);
    if (class >= usable + 8) return class - 8;
  }
  return usable;
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
