// Allocates known numbers of blocks at places of different shares, frees some of them, and writes a
// profile to the file that the first argument names. With a second argument it prints a line before
// and after, begins when it gets a byte, and waits for the end of its input.
#include "api_check.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *kept[40000];
static int count;

// Keeps one block of so many.
static void keep(void *block, int number, int one_of)
{
  CHECK(block != NULL);
  if (number % one_of == 0)
    kept[count++] = block;
  else
    free(block);
}

#define PLACE(name, size, blocks, one_of) \
  static __attribute__((noinline)) void name(void) \
  { \
    for (int i = 0; i < (blocks); i++) \
      keep(malloc(size), i, one_of); \
    __asm__ volatile(""); \
  }

// Of hardly any of these sizes many samples are expected.
static __attribute__((noinline)) void mixed(void)
{
  for (int i = 0; i < 1500; i++)
    keep(malloc(700 + (size_t)i * 7919 % 14000), i, 3);
  __asm__ volatile("");
}

PLACE(most, 64, 16000, 1)
PLACE(some, 60, 6000, 2)
PLACE(few, 64, 600, 1)
PLACE(longer, 500, 4000, 4)
PLACE(pages, 20000, 300, 1)
PLACE(single, 3000, 30, 1)
PLACE(large, 100000, 60, 3)
PLACE(larger, 110000, 20, 1)

int main(int argc, char **argv)
{
  typedef int (*Mallctl)(const char *, void *, size_t *, void *, size_t);
  Mallctl mallctl = (Mallctl)dlsym(RTLD_DEFAULT, "mallctl");
  CHECK((argc == 2 || argc == 3) && mallctl != NULL);
  if (argc == 3) { puts("begins"); fflush(stdout); CHECK(getchar() != EOF); }
  mixed(); most(); some(); few(); longer(); pages(); single(); large(); larger();
  CHECK(mallctl("prof.dump", NULL, NULL, &argv[1], sizeof argv[1]) == 0);
  if (argc == 3) { puts("has written"); fflush(stdout); while (getchar() != EOF) {} }
  return 0;
}
