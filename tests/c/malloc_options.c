/*
 * What the options of malloc over regions are tried on. The argument names what to do. -DALONE: without
 * the library.
 */
#ifndef ALONE
#include "lumalloc.h"
#include "vmalloc.h"
#endif
#include <fcntl.h>
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

/* Of a block that realloc moves, the old place is kept too. */
static void keeps_moved(void)
{
  char *block = allocate(3000), *behind = allocate(3000), *moved;
  int round;
  memset(block, 7, 3000);
  moved = resize(block, 200000);
  if (moved == block || moved[2999] != 7 || behind == NULL) _exit(3);
  memset(moved, 1, 200000);
  for (round = 0; round < 1000; round++) {
    char *other = allocate(3000);
    if (other == block || block[0] != 7 || block[2999] != 7) _exit(4);
    memset(other, 2, 3000);
  }
}

#ifndef ALONE
/* A block that is not the last one keeps its contents, however it is moved. */
static void contents(void)
{
  static const int flags[] = {0, MALLOCX_ZERO, MALLOCX_TCACHE_NONE, MALLOCX_ARENA(0), MALLOCX_ALIGN(256)};
  size_t at;
  for (at = 0; at < sizeof flags / sizeof *flags; at++) {
    char *block = allocate(300), *behind = allocate(300), *moved;
    memset(block, 7, 300);
    memset(behind, 8, 300);
    moved = rallocx(block, 5000, flags[at]);
    if (moved == NULL || moved[0] != 7 || moved[299] != 7 || behind[0] != 8) _exit(10 + (int)at);
    if (flags[at] == MALLOCX_ALIGN(256) && (size_t)moved % 256 != 0) _exit(5);
    memset(moved, 9, 5000);
    moved = rallocx(moved, 100, flags[at]);
    if (moved == NULL || moved[0] != 9 || moved[99] != 9) _exit(20 + (int)at);
    dallocx(moved, 0);
  }
}
#endif

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

/* Closes all descriptors, as daemons do, and has a file of its own under each number. */
static void closes_all(const char *path)
{
  int file, own;
  for (file = 3; file < 200; file++) close(file);
  own = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (file = own + 1; file < 200; file++)
    if (dup2(own, file) != file) _exit(5);
  churn();
  overrun_then_calls();
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "misuse") == 0) misuse();
  if (strcmp(what, "lines") == 0) lines();
  if (strcmp(what, "churn") == 0) churn();
  if (strcmp(what, "overrun") == 0) overrun_then_calls();
  if (strcmp(what, "twice") == 0) free_twice();
  if (strcmp(what, "closes") == 0 && argc > 2) closes_all(argv[2]);
  if (strcmp(what, "keeps") == 0) keeps();
  if (strcmp(what, "moved") == 0) keeps_moved();
#ifndef ALONE
  if (strcmp(what, "contents") == 0) contents();
#endif
  if (strcmp(what, "address") == 0) tell_address();
  if (strcmp(what, "which") == 0) which();
  return 0;
}
