// Changes the sizes of blocks within and out of their size classes, and writes a profile to the file
// that the argument names.
#include "api_check.h"
#include <dlfcn.h>
#include <stdlib.h>

#define BLOCKS 20000
#define GROWN 40

static void *kept[2 * BLOCKS + 2 * GROWN];

// Each block stays where it is: three requests for it are of one class.
__attribute__((noinline)) static void stays(void)
{
  for (int i = 0; i < BLOCKS; i++) {
    void *block = malloc(50);
    CHECK(block != NULL && realloc(block, 60) == block && realloc(block, 64) == block);
    kept[i] = block;
  }
  __asm__ volatile("");
}

// Each block gets another class.
__attribute__((noinline)) static void moves(void)
{
  for (int i = 0; i < BLOCKS; i++) {
    void *block = malloc(300);
    CHECK(block != NULL && (kept[BLOCKS + i] = realloc(block, 2000)) != NULL);
  }
  __asm__ volatile("");
}

// Each block gets longer, step by step. Few of the steps give it another class.
#define GROW(blocks, from, to, step) \
  for (int i = 0; i < GROWN; i++) \
    for (int size = from; size <= to; size += step) \
      CHECK(((blocks)[i] = realloc((blocks)[i], size)) != NULL)

__attribute__((noinline)) static void grows(void)
{
  GROW(kept + 2 * BLOCKS, 1, 20000, 1);
  __asm__ volatile("");
}

__attribute__((noinline)) static void grows_long(void)
{
  GROW(kept + 2 * BLOCKS + GROWN, 40000, 900000, 1000);
  __asm__ volatile("");
}

int main(int argc, char **argv)
{
  typedef int (*Mallctl)(const char *, void *, size_t *, void *, size_t);
  Mallctl mallctl = (Mallctl)dlsym(RTLD_DEFAULT, "mallctl");
  CHECK(argc == 2 && mallctl != NULL);
  stays(); moves(); grows(); grows_long();
  CHECK(mallctl("prof.dump", NULL, NULL, &argv[1], sizeof argv[1]) == 0);
  return 0;
}
