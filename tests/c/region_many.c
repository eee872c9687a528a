/* As many regions as a program likes: all have numbers and names, and are closed in any order. */
#include "region_check.h"
#include "lumalloc.h"

enum { MANY = 17000 };

static Vmalloc_t *regions[MANY];

static size_t published(void)
{
  size_t count, bytes = sizeof count, epoch = 1;
  CHECK(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
  CHECK(mallctl("vm.regions", &count, &bytes, NULL, 0) == 0);
  return count;
}

/* Where the walk is: all regions that are open follow, the newest first. */
struct walk {
  int next, seen;
};

static int see(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  struct walk *walk = (struct walk *)handle;
  (void)segment, (void)size, (void)disc;
  if (vm == Vmheap || (walk->next + 1 < MANY && vm == regions[walk->next + 1])) return 0;
  while (walk->next >= 0 && regions[walk->next] == NULL) walk->next--;
  CHECK(walk->next >= 0 && vm == regions[walk->next]);
  walk->next--;
  walk->seen++;
  return 0;
}

static void expect_open(int count)
{
  struct walk walk = {MANY - 1, 0};
  CHECK(vmwalk(NULL, see, &walk) == 0 && walk.seen == count);
  CHECK(published() == (size_t)count);
}

static void close_one(int at)
{
  CHECK(vmclose(regions[at]) == 0);
  regions[at] = NULL;
}

int main(void)
{
  unsigned state = 1;
  int i, open = MANY;
  for (i = 0; i < MANY; i++) {
    regions[i] = vmopen(Vmdcheap, Vmlast, 0);
    CHECK(regions[i] != NULL && vmname(regions[i], "one of many") == 0);
  }
  expect_open(MANY);
  /* The oldest first, and others at random. */
  for (i = 0; i < MANY / 2; i++, open--) close_one(i);
  expect_open(open);
  for (i = 0; i < MANY / 4; i++) {
    int at;
    state = state * 1103515245u + 12345;
    at = (int)((state >> 8) % MANY);
    if (regions[at] == NULL) continue;
    close_one(at);
    open--;
  }
  expect_open(open);
  /* Numbers are used again. */
  for (i = 0; i < MANY; i++)
    if (regions[i] != NULL) close_one(i);
  expect_open(0);
  puts("ok");
  return 0;
}
