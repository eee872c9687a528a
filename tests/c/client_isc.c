/* libisc's memory contexts, each over an arena of its own: libisc calls arenas.create, the arena's
 * decay times by name, mallocx, rallocx and sdallocx with the arena's flags, and arena.<i>.destroy.
 * Debian has no header of it; these are the functions of 9.18, where file and line, which come last,
 * are left out of the calls that only developers' builds record. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef struct context context;
void isc__mem_create_arena(context **, const char *, unsigned);
int isc_mem_arena_set_dirty_decay_ms(context *, ssize_t);
int isc_mem_arena_set_muzzy_decay_ms(context *, ssize_t);
size_t isc_mem_inuse(context *);
void *isc__mem_get(context *, size_t, size_t alignment);
void *isc__mem_reget(context *, void *, size_t, size_t, size_t alignment);
void isc__mem_put(context *, void *, size_t, size_t alignment);
void isc__mem_destroy(context **, const char *, unsigned);

enum { CONTEXTS = 4, BLOCKS = 300 };

static size_t size_of(int block)
{
  static const size_t sizes[] = {1, 16, 100, 4096, 20000, 300000};
  return sizes[block % 6];
}

/* 0: the allocator's own. */
static size_t alignment_of(int block)
{
  static const size_t alignments[] = {0, 64, 0, 4096, 8};
  return alignments[block % 5];
}

int main(void)
{
  static context *contexts[CONTEXTS];
  static void *blocks[CONTEXTS][BLOCKS];
  int at, block;
  for (at = 0; at < CONTEXTS; at++) {
    size_t before;
    int dirty, muzzy;
    isc__mem_create_arena(&contexts[at], "here", 1);
    dirty = isc_mem_arena_set_dirty_decay_ms(contexts[at], 1000 + at);
    muzzy = isc_mem_arena_set_muzzy_decay_ms(contexts[at], -1);
    before = isc_mem_inuse(contexts[at]);
    for (block = 0; block < BLOCKS; block++) {
      blocks[at][block] = isc__mem_get(contexts[at], size_of(block), alignment_of(block));
      memset(blocks[at][block], at, size_of(block));
    }
    printf("arena %d: %d %d, %zu in use\n", at, dirty, muzzy, isc_mem_inuse(contexts[at]) - before);
  }
  for (at = 0; at < CONTEXTS; at++) {
    for (block = 0; block < BLOCKS; block++) {
      size_t size = size_of(block);
      size_t alignment = alignment_of(block);
      char *moved = isc__mem_reget(contexts[at], blocks[at][block], size, 2 * size, alignment);
      if (alignment && (uintptr_t)moved % alignment) abort();
      if (moved[0] != at || moved[size - 1] != at) abort();
      isc__mem_put(contexts[at], moved, 2 * size, alignment);
    }
    isc__mem_destroy(&contexts[at], "here", 1);
  }
  puts("all gone");
  return 0;
}
