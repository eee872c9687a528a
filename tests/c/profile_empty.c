/* Allocates more blocks of 0 bytes than there are addresses for, frees some, and writes the present
 * profile as argv[1] and argv[2] name it. */
#include "api_check.h"
#include <lumalloc.h>

/* The library is preloaded. */
#pragma weak mallctl

#define PLACE __attribute__((noinline))

static void *blocks[70000];

PLACE static void empty(void)
{
  int at;
  for (at = 0; at < 70000; at++) CHECK((blocks[at] = malloc(0)) != NULL);
}

PLACE static void mixed(void)
{
  void *volatile block = malloc(0);
  block = malloc(300);
  CHECK(block != NULL);
}

int main(int count, char **words)
{
  int at;
  (void)count;
  empty();
  mixed();
  for (at = 0; at < 1000; at++) free(blocks[at]);
  for (at = 1; at < 3; at++)
    CHECK(mallctl("prof.dump", NULL, NULL, &words[at], sizeof words[at]) == 0);
  return 0;
}
