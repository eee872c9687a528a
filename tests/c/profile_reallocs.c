// Changes the sizes of blocks within and out of their size classes, and writes a profile to the file
// that the argument names.
#include "api_check.h"
#include <dlfcn.h>
#include <stdlib.h>

#define BLOCKS 20000

static void *kept[2 * BLOCKS];

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

int main(int argc, char **argv)
{
  typedef int (*Mallctl)(const char *, void *, size_t *, void *, size_t);
  Mallctl mallctl = (Mallctl)dlsym(RTLD_DEFAULT, "mallctl");
  CHECK(argc == 2 && mallctl != NULL);
  stays(); moves();
  CHECK(mallctl("prof.dump", NULL, NULL, &argv[1], sizeof argv[1]) == 0);
  return 0;
}
