/* What only glibc has. These must tell of this library's heap, not of glibc's empty one. */
#include "api_check.h"

/* mallinfo, whose ints are too narrow. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { COUNT = 400 };
static const size_t SIZE = 100000;
static void *blocks[COUNT];

static void allocate(void)
{
  int at;
  for (at = 0; at < COUNT; at++) blocks[at] = memset(malloc(SIZE), 1, SIZE);
}

static void release(void)
{
  int at;
  for (at = 0; at < COUNT; at++) free(blocks[at]);
}

static void info(void)
{
  struct mallinfo2 before = mallinfo2(), during, after;
  struct mallinfo narrow;
  allocate();
  during = mallinfo2();
  narrow = mallinfo();
  release();
  after = mallinfo2();
  CHECK(during.uordblks >= before.uordblks + COUNT * SIZE);
  CHECK(during.uordblks < before.uordblks + 2 * COUNT * SIZE);
  CHECK(during.arena >= during.uordblks && during.ordblks >= 1);
  CHECK(after.uordblks < during.uordblks - COUNT * SIZE / 2);
  CHECK((size_t)narrow.uordblks >= COUNT * SIZE && narrow.arena >= narrow.uordblks);
}

static void trim(void)
{
  int released = 0;
  allocate();
  release();
  KEEPS_ERRNO(released = malloc_trim(0));
  CHECK(released == 1);
  CHECK(malloc_trim(0) == 0);
  CHECK(mallinfo2().keepcost < COUNT * SIZE / 2);
}

static void options(void)
{
  CHECK(mallopt(M_MMAP_THRESHOLD, 1000000) == 1 && mallopt(M_ARENA_MAX, 2) == 1);
  CHECK(mallopt(M_MXFAST, 0) == 1);
  CHECK(mallopt(0, 1) == 0 && mallopt(1000, 1) == 0 && mallopt(-1000, 1) == 0);
}

static void xml(void)
{
  static char text[1 << 16];
  size_t length;
  FILE *file = tmpfile();
  CHECK(file != NULL);
  errno = 0;
  CHECK(malloc_info(1, file) == -1 && errno == EINVAL);
  CHECK(malloc_info(0, file) == 0);
  rewind(file);
  length = fread(text, 1, sizeof text - 1, file);
  text[length] = 0;
  CHECK(strncmp(text, "<malloc version=\"1\">\n", 21) == 0);
  CHECK(strcmp(text + length - 10, "</malloc>\n") == 0);
  CHECK(strstr(text, "<heap nr=\"0\">") && strstr(text, "</heap>"));
  CHECK(strstr(text, "<system type=\"current\" size=\"") != NULL);
  CHECK(strtoull(strstr(text, "current\" size=\"") + 15, NULL, 10) > 0);
  fclose(file);
  file = fopen("/dev/full", "w");
  setvbuf(file, NULL, _IONBF, 0);
  CHECK(malloc_info(0, file) == -1);
  fclose(file);
}

int main(void)
{
  free(malloc(1));
  info();
  trim();
  options();
  xml();
  puts("ok");
  return 0;
}
