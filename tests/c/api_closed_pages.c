/* The pages around large blocks of the hardened tier, and those of freed ones, which no thread may
 * touch. The blocks grow in place, are moved by the system, and are purged. The records of the
 * allocator lie between such pages too. */
#include "api_check.h"

#include <unistd.h>

#define KIB 1024ul
#define MIB (1024 * KIB)
#define PAGE 4096

enum { BLOCKS = 16 };

static int ends[2];

/* Whether a byte may be read: the system refuses to copy what may not. */
static int is_open(const char *byte)
{
  char copy;
  if (write(ends[1], byte, 1) != 1) {
    CHECK(errno == EFAULT);
    return 0;
  }
  CHECK(read(ends[0], &copy, 1) == 1);
  return 1;
}

static char *filled(size_t size)
{
  char *block = malloc(size);
  CHECK(block != NULL && is_aligned(block, PAGE));
  fill(block, size, 1);
  return block;
}

/* Lengthens a block, and checks the pages beside it. */
static char *grown(char *block, size_t size, size_t new_size)
{
  char *longer = realloc(block, new_size);
  CHECK(longer != NULL && is_filled(longer, size, 1));
  CHECK(is_open(longer + new_size - 1) && !is_open(longer + new_size));
  fill(longer, new_size, 1);
  return longer;
}

/* Blocks beside each other that grow by just the two pages that lie between them. */
static void growth_leaves_a_page(void)
{
  char *blocks[BLOCKS];
  int n, beside = 0;
  for (n = 0; n < BLOCKS; n++) blocks[n] = filled(40 * KIB);
  for (n = 1; n < BLOCKS; n++)
    beside += blocks[n] - blocks[n - 1] == 48 * KIB || blocks[n - 1] - blocks[n] == 48 * KIB;
  CHECK(beside > 0);
  for (n = 0; n < BLOCKS; n++) blocks[n] = grown(blocks[n], 40 * KIB, 48 * KIB);
  for (n = 0; n < BLOCKS; n++) CHECK(!is_open(blocks[n] - 1));
  for (n = 0; n < BLOCKS; n++) free(blocks[n]);
}

/* Blocks with free pages behind them. */
static void growth_over_free_pages_leaves_a_page(void)
{
  char *first = filled(40 * KIB), *second = filled(200 * KIB), *third = filled(40 * KIB);
  free(second);
  first = grown(first, 40 * KIB, 80 * KIB);
  first = grown(first, 80 * KIB, 160 * KIB);
  free(first);
  free(third);
}

static void moved_blocks_leave_nothing_open(void)
{
  char *block = filled(MIB), *wall = filled(40 * KIB);
  block = grown(block, MIB, MIB + MIB / 2);
  free(block);
  free(wall);
  char *longer = filled(3 * MIB);
  wall = filled(40 * KIB);
  char *moved = realloc(longer, 16 * MIB);
  CHECK(moved != NULL && is_filled(moved, 3 * MIB, 1));
  CHECK(moved == longer || !(is_open(longer) || is_open(longer + 3 * MIB - 1)));
  free(moved);
  CHECK(!is_open(moved));
  free(wall);
}

static void purged_blocks_stay_closed(void)
{
  char *block = filled(9 * MIB), *wall = filled(40 * KIB);
  free(block);
  CHECK(!is_open(block) && !is_open(block + 8 * MIB));
  CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
  CHECK(!is_open(block) && !is_open(block + 8 * MIB));
  free(wall);
}

/* The allocator's records lie in chunks of 2 MiB. The first and the last page of each are closed. */
static void records_lie_between_closed_pages(void)
{
  FILE *maps = fopen("/proc/self/maps", "r");
  unsigned long begin, end;
  char access[5], line[512];
  int chunks = 0, follows_closed = 0, may_be_chunk = 0;
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps)) {
    CHECK(sscanf(line, "%lx-%lx %4s", &begin, &end, access) == 3);
    const int is_closed = !strcmp(access, "---p");
    chunks += may_be_chunk && is_closed;
    may_be_chunk = follows_closed && !strcmp(access, "rw-p") && end - begin == 2 * MIB - 2 * PAGE;
    follows_closed = is_closed;
  }
  fclose(maps);
  CHECK(chunks == 1);
}

int main(void)
{
  CHECK(pipe(ends) == 0);
  records_lie_between_closed_pages();
  growth_leaves_a_page();
  growth_over_free_pages_leaves_a_page();
  moved_blocks_leave_nothing_open();
  purged_blocks_stay_closed();
  puts("ok");
  return 0;
}
