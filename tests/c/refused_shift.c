/* Long blocks that are made of the memory of freed ones, where the system refuses to move the memory
 * after the first move. What was moved before is used again later. In the hardened tier nobody may
 * touch freed blocks, and their memory is moved as it is. The library calls the mremap below. Prints
 * whether it refused a move. */
#include "api_check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1ul << 20)

enum { BLOCKS = 3 };

static int moves, is_refused;

void *mremap(void *from, size_t size, size_t new_size, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void *to = va_arg(rest, void *);
  va_end(rest);
  /* The first call is a try whether the system moves memory in that way at all. */
  if (++moves > 2 && !is_refused) {
    is_refused = 1;
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void *)syscall(SYS_mremap, from, size, new_size, flags, to);
}

static void *filled(size_t size) {
  char *block = malloc(size);
  CHECK(block != NULL);
  memset(block, 1, size);
  return block;
}

int main(void) {
  void *unused[BLOCKS], *between[BLOCKS], *later[BLOCKS];
  for (int n = 0; n < BLOCKS; n++) {
    unused[n] = filled(12 * MIB);
    between[n] = filled(MIB);
  }
  for (int n = 0; n < BLOCKS; n++)
    free(unused[n]);
  void *whole = filled(30 * MIB);
  for (int n = 0; n < BLOCKS; n++)
    later[n] = filled(MIB + MIB / 2);
  for (int n = 0; n < BLOCKS; n++) {
    free(later[n]);
    free(between[n]);
  }
  free(whole);
  if (is_refused)
    puts("refused");
  return 0;
}
