/* Vmheap: the heap of malloc as a region. */
#include "region_check.h"

static void blocks_are_those_of_malloc(void)
{
  void *block = vmalloc(Vmheap, 100), *other = malloc(100);
  CHECK(is_aligned(block, 16) && is_aligned(vmalloc(Vmheap, 1), 16) && vmregion(block) == Vmheap);
  free(block);
  CHECK(vmfree(Vmheap, other) == 0);
  other = malloc(10);
  CHECK((other = vmresize(Vmheap, other, 100000, VM_RSCOPY)) != NULL);
  free(other);
}

static void flags_and_discipline(void)
{
  CHECK(vmset(Vmheap, 0, 0) == (VM_MTBEST | VM_SHARE) && Vmheap->disc == Vmdcsystem && Vmdcsbrk == Vmdcsystem);
  CHECK(Vmdcheap->round == 0 && Vmdcheap->exceptf == NULL && Vmdcsystem->round == 0 && Vmdcsystem->exceptf == NULL);
  CHECK(vmclose(Vmheap) == -1 && vmclear(Vmheap) == -1 && vmcompact(Vmheap) == 0);
  CHECK(vmbusy(Vmheap) == 0 && vmlocked(Vmheap) == 0 && vmdata(Vmheap) != NULL);
}

static void misuse_is_refused(void)
{
  char *large = (char *)vmalloc(Vmheap, 1 << 20), *small = (char *)vmalloc(Vmheap, 48);
  int on_stack = 0;
  errno = 0;
  CHECK(vmfree(Vmheap, &on_stack) == -1 && errno == EINVAL);
  CHECK(vmfree(Vmheap, small + 1) == -1 && vmfree(Vmheap, large + 4096) == -1 && vmfree(Vmheap, (void *)8) == -1);
  CHECK(vmresize(Vmheap, small + 8, 100, VM_RSMOVE) == NULL);
  CHECK(vmfree(Vmheap, large) == 0 && vmfree(Vmheap, large) == -1);
  CHECK(vmfree(Vmheap, small) == 0 && vmfree(Vmheap, NULL) == 0);
}

static void sizes_and_places(void)
{
  char *large = (char *)vmalloc(Vmheap, 1 << 20), *small = (char *)vmalloc(Vmheap, 48), *segment;
  CHECK(vmsize(Vmheap, small) == 48 && vmaddr(Vmheap, small + 47) == 47 && vmsize(Vmheap, small + 1) == -1);
  CHECK(vmsize(Vmheap, large) >= 1 << 20 && vmaddr(Vmheap, large + 1000000) == 1000000);
  segment = (char *)vmsegment(Vmheap, small);
  CHECK(segment != NULL && segment <= small && vmsegment(Vmheap, &large) == NULL);
  CHECK(vmfree(Vmheap, small) == 0 && vmsize(Vmheap, small) == -1 && vmaddr(Vmheap, small) == -1);
  CHECK(vmfree(Vmheap, large) == 0 && vmsize(Vmheap, large) == -1 && vmaddr(Vmheap, large + 5000) == -1);
}

/* What malloc(0) returns is no block of any region, but can be freed. */
static void no_bytes_are_no_block(void)
{
  void *nothing = malloc(0), *other = malloc(0);
  CHECK(nothing != NULL && vmregion(nothing) == NULL && vmsegment(Vmheap, nothing) == NULL);
  CHECK(vmsize(Vmheap, nothing) == -1 && vmaddr(Vmheap, nothing) == -1);
  CHECK(vmfree(Vmheap, nothing) == 0);
  other = vmresize(Vmheap, other, 100, VM_RSMOVE);
  CHECK(other != NULL && vmregion(other) == Vmheap && vmfree(Vmheap, other) == 0);
}

/* Guarded samples are blocks of the heap, but lie in no segment. */
static void guarded_samples_are_in_no_segment(void)
{
  int at, found = 0;
  for (at = 0; at < 1000; at++) {
    void *block = malloc(100);
    CHECK(block != NULL && vmregion(block) == Vmheap && vmsize(Vmheap, block) >= 100);
    found += vmsegment(Vmheap, block) == NULL;
    free(block);
  }
  CHECK(found > 0);
}

static void any_alignment(void)
{
  static const size_t aligns[] = {1, 8, 24, 48, 100, 127, 1000, 4096, 3 * 4096, 1 << 20};
  size_t at;
  for (at = 0; at < sizeof aligns / sizeof *aligns; at++) {
    char *block = (char *)vmalign(Vmheap, 70, aligns[at]);
    CHECK(block != NULL && is_aligned(block, aligns[at]) && is_aligned(block, 16));
    fill(block, 70, 1);
    CHECK(vmfree(Vmheap, block) == 0);
  }
  FAILS_WITH(EINVAL, vmalign(Vmheap, 0, 8));
  FAILS_WITH(EINVAL, vmalign(Vmheap, 8, 0));
}

/* VM_RSZERO clears from the size that was asked for before. */
static void new_space_is_clear(void)
{
  char *block;
  int size;
  for (size = 0; size < 300; size++) {
    block = (char *)malloc(400);
    memset(block, 0x55, 400);
    free(block);
  }
  block = (char *)vmalloc(Vmheap, 1);
  block[0] = 1;
  for (size = 2; size < 5000; size += size / 7 + 1) {
    block = (char *)vmresize(Vmheap, block, (size_t)size, VM_RSCOPY | VM_RSZERO);
    CHECK(block != NULL && block[0] == 1 && is_zero(block + 1, (size_t)size - 1));
  }
  memset(block, 7, 3000);
  block = (char *)vmresize(Vmheap, block, 10, VM_RSCOPY);
  block = (char *)vmresize(Vmheap, block, 3000, VM_RSCOPY | VM_RSZERO);
  CHECK(block[9] == 7 && is_zero(block + 10, 2990) && vmfree(Vmheap, block) == 0);
  block = (char *)vmalloc(Vmheap, 100);
  CHECK(vmresize(Vmheap, block, 1 << 20, 0) == NULL && vmresize(Vmheap, block, 100, 0) == block);
  CHECK(vmresize(Vmheap, block, 0, 0) == NULL);
}

/* Of a block of malloc it is not known what was asked for. */
static void new_space_of_a_block_of_malloc_is_behind_its_usable_size(void)
{
  char *block = (char *)malloc(100);
  size_t usable = malloc_usable_size(block);
  CHECK(usable >= 100);
  memset(block, 7, usable);
  block = vmnewof(Vmheap, block, char, 3000, 0);
  CHECK(block != NULL && block[99] == 7 && is_zero(block + usable, 3000 - usable) && vmfree(Vmheap, block) == 0);
}

static void statistics(void)
{
  Vmstat_t before, after, all;
  void *blocks[1000];
  int at;
  CHECK(vmstat(Vmheap, &before) == 0);
  for (at = 0; at < 1000; at++) blocks[at] = vmalloc(Vmheap, 1000);
  CHECK(vmstat(Vmheap, &after) == 0 && vmstat(NULL, &all) == 0);
  CHECK(after.n_busy == before.n_busy + 1000 && after.s_busy >= before.s_busy + 1000000);
  CHECK(after.s_busy + after.s_free <= after.extent && after.m_busy >= 1000 && after.n_seg >= 1);
  CHECK(after.m_free <= after.s_free && after.n_free > 0 && after.mode == (VM_MTBEST | VM_SHARE));
  CHECK(after.n_region == 0 && all.n_region >= 1 && all.n_busy == after.n_busy && all.s_busy == after.s_busy);
  for (at = 0; at < 1000; at++) CHECK(vmfree(Vmheap, blocks[at]) == 0);
  CHECK(vmstat(Vmheap, &after) == 0 && after.n_busy == before.n_busy && after.s_busy == before.s_busy);
}

/* An exceptf on Vmheap hears of what is wrong, as programs of AST use it. */
static int heard[2];

static int hear(Vmalloc_t *vm, int type, void *obj, Vmdisc_t *disc)
{
  (void)obj, (void)disc;
  CHECK(vm == Vmheap);
  heard[type == VM_NOMEM]++;
  return type == VM_NOMEM && heard[1] < 3 ? 1 : -1;
}

static void events(void)
{
  static Vmdisc_t disc;
  disc = *Vmdcsystem;
  disc.exceptf = hear;
  CHECK(vmdisc(Vmheap, &disc) == &disc && vmdisc(Vmheap, NULL) == &disc);
  FAILS_WITH(ENOMEM, vmalloc(Vmheap, opaque(SIZE_MAX / 4)));
  CHECK(heard[1] == 3 && vmfree(Vmheap, &disc) == -1 && heard[0] == 1);
  CHECK(vmdisc(Vmheap, Vmdcsystem) == &disc);
  disc.exceptf = NULL;
  CHECK(vmdisc(Vmheap, Vmdcsystem) == Vmdcsystem);
}

static int see(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  char *block = *(char **)handle;
  CHECK(vm == Vmheap && disc == Vmdcsystem);
  return block >= (char *)segment && block < (char *)segment + size ? -7 : 1;
}

static void the_walk_meets_each_segment(void)
{
  char *block = (char *)vmalloc(Vmheap, 100);
  void *nothing = NULL;
  CHECK(vmwalk(Vmheap, see, &block) == -7 && vmwalk(NULL, see, &block) == -7);
  CHECK(vmwalk(Vmheap, see, &nothing) == 0 && vmwalk(NULL, see, &nothing) == 0);
  CHECK(vmwalk(Vmheap, NULL, NULL) == -1);
}

int main(int argc, char **argv)
{
  if (argc > 1 && strcmp(argv[1], "guarded") == 0) {
    guarded_samples_are_in_no_segment();
    puts("ok");
    return 0;
  }
  blocks_are_those_of_malloc();
  flags_and_discipline();
  misuse_is_refused();
  sizes_and_places();
  no_bytes_are_no_block();
  any_alignment();
  new_space_is_clear();
  new_space_of_a_block_of_malloc_is_behind_its_usable_size();
  statistics();
  events();
  the_walk_meets_each_segment();
  puts("ok");
  return 0;
}
