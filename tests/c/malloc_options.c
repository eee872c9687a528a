/*
 * What the options of malloc over regions are tried on. The argument names what to do. -DALONE: without
 * the library.
 */
#ifndef ALONE
#include "vmalloc.h"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compilers know too much of malloc and free. */
static void *(*volatile allocate)(size_t) = malloc;
static void *(*volatile resize)(void *, size_t) = realloc;
static void (*volatile release)(void *) = free;

static void misuse(void)
{
  char *block = allocate(20), *freed = allocate(5), *large = allocate(70000);
  block[20] = 1;
  release(freed);
  release(freed);
  release(block + 4);
  release(block);
  large[70001] = 2;
  large = resize(large, 100000);
  release(large);
}

/* Without printf, which allocates. */
static void lines(void)
{
  void *block = malloc(1234);
  block = realloc(block, 5000);
  free(block);
  block = calloc(3, 7);
  free(block);
}

static void churn(void)
{
  int round;
  for (round = 0; round < 1000; round++) {
    void *block = allocate(100);
    block = resize(block, 200);
    release(block);
  }
}

static void overrun_then_calls(void)
{
  char *block = allocate(10);
  int round;
  block[10] = 1;
  for (round = 0; round < 20; round++) release(allocate(30));
  if (write(1, "calls made\n", 11) != 11) _exit(2);
}

static void free_twice(void)
{
  void *block = allocate(3000);
  release(block);
  release(block);
}

static void keeps(void)
{
  char *block = allocate(3000), *other;
  block[0] = 7;
  release(block);
  other = allocate(3000);
  if (block == other || block[0] != 7) _exit(3);
}

static void tell_address(void)
{
  void *block = allocate(3000);
  dprintf(1, "%p\n", block);
  release(block);
}

static void which(void)
{
#ifndef ALONE
  void *block = allocate(3000);
  Vmalloc_t *vm = vmregion(block);
  if (vm == NULL) vm = Vmregion;
  dprintf(1, "%o %d\n", (unsigned)vmset(vm, 0, 0) & 03717, vm == Vmregion);
#endif
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "misuse") == 0) misuse();
  if (strcmp(what, "lines") == 0) lines();
  if (strcmp(what, "churn") == 0) churn();
  if (strcmp(what, "overrun") == 0) overrun_then_calls();
  if (strcmp(what, "twice") == 0) free_twice();
  if (strcmp(what, "keeps") == 0) keeps();
  if (strcmp(what, "address") == 0) tell_address();
  if (strcmp(what, "which") == 0) which();
  return 0;
}
