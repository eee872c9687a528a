/* What both pages of vmalloc(3) promise: each function is named after a sentence. */
#include "region_check.h"
#include <errno.h>

static Vmethod_t *methods[3];
static const int bits[3] = {VM_MTBEST, VM_MTLAST, VM_MTPOOL};

/* "vmopen ... returns a pointer to the region on success and NULL on failure." */
static void vmopen_fails_without_its_parts(void)
{
  Vmdisc_t empty = {NULL, NULL, 0, 0};
  Vmethod_t unknown = *Vmbest;
  unknown.meth = 0;
  FAILS_WITH(EINVAL, vmopen(NULL, Vmbest, 0));
  FAILS_WITH(EINVAL, vmopen(Vmdcheap, NULL, 0));
  FAILS_WITH(EINVAL, vmopen(&empty, Vmbest, 0));
  FAILS_WITH(EINVAL, vmopen(Vmdcheap, &unknown, 0));
}

/* "vmset(region,0,0) queries the flags", "one of VM_MTBEST, ... is returned". */
static void vmset_returns_the_previous_flags(void)
{
  int m;
  for (m = 0; m < 3; m++) {
    Vmalloc_t *vm = vmopen(Vmdcsystem, methods[m], VM_TRACE | VM_TRUST | 0x40000000);
    CHECK(vm != NULL);
    CHECK(vmset(vm, 0, 0) == (bits[m] | VM_TRACE));
    CHECK(vmset(vm, VM_TRACE, 0) == (bits[m] | VM_TRACE));
    CHECK(vmset(vm, VM_SHARE | VM_METHODS, 1) == bits[m]);
    CHECK(vmset(vm, VM_MEMORYF, 1) == (bits[m] | VM_SHARE));
    CHECK(vmset(vm, 0, 0) == (bits[m] | VM_SHARE));
    CHECK(vmclose(vm) == 0);
  }
  CHECK(vmset(NULL, 0, 0) == -1);
}

/* "vmalloc returns a pointer to a block of the requested size in a region, aligned to the strictest
 * alignment". */
static void blocks_are_aligned_and_apart(void)
{
  static const size_t sizes[] = {1, 7, 16, 100, 4000, 100000};
  char *blocks[600];
  int m, at;
  for (m = 0; m < 2; m++) {
    Vmalloc_t *vm = vmopen(m == 0 ? Vmdcheap : Vmdcsystem, methods[m], 0);
    for (at = 0; at < 600; at++) {
      size_t size = sizes[at % 6];
      blocks[at] = (char *)vmalloc(vm, size);
      CHECK(blocks[at] != NULL && is_aligned(blocks[at], 16));
      fill(blocks[at], size, (unsigned)at);
    }
    for (at = 0; at < 600; at++) CHECK(is_filled(blocks[at], sizes[at % 6], (unsigned)at));
    CHECK(vmclose(vm) == 0);
  }
}

/* "vmalign ... returns a block aligned to a common multiple of align and the strictest alignment." */
static void vmalign_takes_any_alignment(void)
{
  static const size_t aligns[] = {1, 2, 24, 48, 100, 127, 4096, 65536};
  int m, at;
  for (m = 0; m < 3; m++) {
    Vmalloc_t *vm = vmopen(Vmdcsystem, methods[m], 0);
    for (at = 0; at < 8; at++) {
      void *block = vmalign(vm, 50, aligns[at]);
      CHECK(m == 2 ? block == NULL : is_aligned(block, aligns[at]) && is_aligned(block, 16) && block != NULL);
    }
    FAILS_WITH(EINVAL, vmalign(vm, 0, 16));
    FAILS_WITH(EINVAL, vmalign(vm, 16, 0));
    CHECK(vmclose(vm) == 0);
  }
}

/* "If addr is NULL, vmresize behaves like vmalloc; otherwise, if size is 0, it behaves like vmfree." */
static void vmresize_allocates_and_frees(void)
{
  int m;
  for (m = 0; m < 3; m++) {
    Vmalloc_t *vm = vmopen(Vmdcheap, methods[m], 0);
    void *block = vmresize(vm, NULL, 100, VM_RSZERO);
    CHECK(is_zero(block, 100) && vmsize(vm, block) >= 100);
    CHECK(vmresize(vm, block, 0, VM_RSMOVE) == NULL);
    CHECK(vmsize(vm, block) == -1);
    CHECK(vmclose(vm) == 0);
  }
}

/* "The bit VM_RSCOPY also causes the new block to be initialized with as much of the old contents as
 * will fit", "the new space will be cleared if type has the bit VM_RSZERO". */
static void vmresize_copies_and_clears(void)
{
  int m;
  for (m = 0; m < 2; m++) {
    Vmalloc_t *vm = vmopen(Vmdcheap, methods[m], 0);
    char *block = (char *)vmalloc(vm, 112), *other, *moved;
    memset(block, 0x55, 112);
    other = (char *)vmalloc(vm, 10);
    CHECK(vmresize(vm, block, 5000, 0) == NULL);
    CHECK(block[0] == 0x55 && block[111] == 0x55);
    moved = (char *)vmresize(vm, block, 5000, VM_RSCOPY | VM_RSZERO);
    CHECK(moved != NULL && moved != block && moved[0] == 0x55 && moved[111] == 0x55);
    /* Of an older block of Vmlast the size is not known. */
    CHECK(is_zero(moved + (m == 0 ? 112 : 128), 5000 - 128));
    memset(moved, 0x66, 5000);
    moved = (char *)vmresize(vm, moved, 20, VM_RSCOPY);
    CHECK(moved != NULL && moved[0] == 0x66 && moved[19] == 0x66);
    (void)other;
    CHECK(vmclose(vm) == 0);
  }
}

/* New bytes are zero from the size on that was asked for before, also where a block was longer. */
static void new_bytes_are_zero_whatever_was_there(void)
{
  int m, size;
  for (m = 0; m < 2; m++) {
    Vmalloc_t *vm = vmopen(Vmdcheap, methods[m], 0);
    char *block, *dirty = (char *)vmalloc(vm, 60000);
    memset(dirty, 0x55, 60000);
    CHECK(vmfree(vm, dirty) == 0);
    block = (char *)vmalloc(vm, 1);
    block[0] = 1;
    for (size = 2; size < 3000; size += size / 9 + 1) {
      block = (char *)vmresize(vm, block, (size_t)size, VM_RSCOPY | VM_RSZERO);
      CHECK(block != NULL && block[0] == 1 && is_zero(block + 1, (size_t)size - 1));
    }
    memset(block, 7, (size_t)vmsize(vm, block));
    block = (char *)vmresize(vm, block, 5, VM_RSCOPY);
    block = (char *)vmresize(vm, block, 1000, VM_RSCOPY | VM_RSZERO);
    CHECK(block[4] == 7 && is_zero(block + 5, 995));
    CHECK(vmclose(vm) == 0);
  }
}

/* A block of 0 bytes has none that stay, whatever lies where it moves. */
static void a_block_of_no_bytes_grows_by_zeros(void)
{
  Vmethod_t *with[] = {Vmbest, Vmdebug, Vmprofile};
  size_t m;
  for (m = 0; m < sizeof with / sizeof *with; m++) {
    Vmalloc_t *vm = vmopen(Vmdcheap, with[m], 0);
    char *block = (char *)vmalloc(vm, 60000);
    memset(block, 0x55, 60000);
    CHECK(vmclear(vm) == 0);
    block = (char *)vmalloc(vm, 0);
    CHECK(block != NULL && vmalloc(vm, 10) != NULL);
    block = (char *)vmresize(vm, block, 5000, VM_RSMOVE | VM_RSZERO);
    CHECK(block != NULL && is_zero(block, 5000));
    CHECK(vmclose(vm) == 0);
  }
}

/* A discipline that frees the block that is being resized. */
static void *victim;

static void free_the_victim(Vmalloc_t *vm, int type, void *obj)
{
  (void)obj;
  if (type == VM_NOMEM) CHECK(vmfree(vm, victim) == 0);
}

static void a_block_may_go_while_it_is_resized(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, 0);
  Vmstat_t st;
  victim = vmalloc(vm, 6000);
  CHECK(vmalloc(vm, 10) != NULL);
  it->left = 0;
  it->more = 10000;
  it->on_event = free_the_victim;
  it->returns[VM_NOMEM] = 1;
  CHECK(vmresize(vm, victim, 8000, VM_RSCOPY) == NULL);
  it->on_event = NULL;
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 1);
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* "If addr is NULL, vmfree does nothing. It returns -1 on error, and nonnegative otherwise." */
static void vmfree_refuses_what_is_no_block(void)
{
  struct recorder *it = recorder(64, GROWS);
  Vmalloc_t *other = vmopen(Vmdcheap, Vmbest, 0);
  char *foreign = (char *)vmalloc(other, 100), *own = (char *)malloc(100);
  int m;
  for (m = 0; m < 3; m++) {
    Vmalloc_t *vm = vmopen(&it->disc, methods[m], 0);
    char *block = (char *)vmalloc(vm, 100);
    CHECK(vmfree(vm, NULL) == 0);
    it->log[0] = 0;
    errno = 0;
    CHECK(vmfree(vm, foreign) == -1 && errno == EINVAL);
    CHECK(vmfree(vm, own) == -1 && vmfree(vm, &m) == -1 && vmfree(vm, block + 16) == -1);
    CHECK(vmfree(vm, (void *)1) == -1);
    CHECK(vmresize(vm, foreign, 200, VM_RSMOVE) == NULL);
    /* Vmlast knows the latest block only: it cannot tell an address inside one from an older block. */
    expect_log(it, m == 1 ? "bbbbb" : "bbbbbb");
    CHECK(vmfree(vm, block) == 0);
    CHECK(vmfree(vm, block) == -1);
    expect_log(it, "b");
    CHECK(vmclose(vm) == 0);
    it->log[0] = 0;
  }
  CHECK(vmfree(NULL, foreign) == -1);
  CHECK(vmclose(other) == 0);
  free(own);
  free(it);
}

/* "Sizes may be padded beyond that requested; in particular no block has size 0." */
static void blocks_of_size_0(void)
{
  Vmalloc_t *best = vmopen(Vmdcheap, Vmbest, 0), *last = vmopen(Vmdcheap, Vmlast, 0);
  Vmalloc_t *pool = vmopen(Vmdcheap, Vmpool, 0);
  CHECK(vmsize(best, vmalloc(best, 0)) > 0 && vmsize(last, vmalloc(last, 0)) > 0);
  CHECK(vmalloc(pool, 0) == NULL && vmalloc(pool, 8) != NULL);
  CHECK(vmclose(best) == 0 && vmclose(last) == 0 && vmclose(pool) == 0);
}

/* All bytes are new then, also where memory was in use before. The block grows in place, and moves. */
static void blocks_of_size_0_grow_with_zeros(void)
{
  Vmethod_t *const all[] = {Vmbest, Vmlast, Vmdebug, Vmprofile};
  int m, way;
  for (m = 0; m < 4; m++)
    for (way = 0; way < 4; way++) {
      struct recorder *it = recorder(64, GROWS);
      Vmalloc_t *vm = vmopen(&it->disc, all[m], 0);
      char *block;
      if (way < 2) {
        /* Memory of a block that was freed. */
        block = (char *)vmalloc(vm, 5000);
        memset(block, 0x55, 5000);
        CHECK(vmfree(vm, block) == 0 && vmcompact(vm) == 0);
      }
      block = vmnewof(vm, NULL, char, 0, 0);
      /* Vmlast knows the size of the latest block alone. */
      if (way % 2 == 1 && m != 1) CHECK(vmalloc(vm, 10) != NULL);
      block = vmnewof(vm, block, char, 4000, 0);
      CHECK(block != NULL && is_zero(block, 4000) && vmclose(vm) == 0);
      free(it);
    }
}

/* "Only the latest allocated block can be freed ... vmfree calls on blocks other than a are ignored." */
static void vmlast_frees_the_latest(void)
{
  struct recorder *it = recorder(0, GROWS);
  Vmalloc_t *vm = vmopen(&it->disc, Vmlast, 0);
  char *first = (char *)vmalloc(vm, 10), *second = (char *)vmalloc(vm, 10);
  it->log[0] = 0;
  CHECK(vmfree(vm, first) == -1 && vmsize(vm, first) == -1 && vmaddr(vm, first) == -1);
  expect_log(it, "");
  CHECK(vmsize(vm, second) == 16 && vmaddr(vm, second + 5) == 5);
  CHECK(vmfree(vm, second) == 0 && vmfree(vm, second) == -1);
  CHECK(vmalloc(vm, 10) == second);
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* "A strategy for blocks of one size, set by the first vmalloc call after vmopen or vmclear." */
static void vmpool_has_one_size(void)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmpool, 0);
  Vmstat_t st;
  CHECK(vmalloc(vm, 13) != NULL && vmalloc(vm, 14) == NULL && vmalloc(vm, 13) != NULL);
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 2 && st.s_busy == 26 && st.m_busy == 13);
  CHECK(vmclear(vm) == 0 && vmalloc(vm, 14) != NULL && vmalloc(vm, 13) == NULL);
  CHECK(vmclose(vm) == 0);
}

/* "vmclear frees all allocated blocks in region regardless of methods." */
static void vmclear_frees_all_blocks(void)
{
  int m, at;
  for (m = 0; m < 3; m++) {
    Vmalloc_t *vm = vmopen(Vmdcsystem, methods[m], 0);
    char *block = NULL;
    Vmstat_t before, after;
    for (at = 0; at < 5000; at++) CHECK((block = (char *)vmalloc(vm, 100)) != NULL);
    CHECK(vmstat(vm, &before) == 0 && before.n_busy == 5000);
    CHECK(vmclear(vm) == 0);
    CHECK(vmstat(vm, &after) == 0 && after.n_busy == 0 && after.extent == before.extent);
    CHECK(vmfree(vm, block) == -1);
    for (at = 0; at < 5000; at++) CHECK(vmalloc(vm, 100) != NULL);
    CHECK(vmstat(vm, &after) == 0 && after.extent == before.extent);
    CHECK(vmclose(vm) == 0);
  }
  CHECK(vmclear(Vmheap) == -1 && vmclear(NULL) == -1);
}

/* "vmcompact releases as much of a region's free space to its discipline's memoryf as possible." */
static void vmcompact_releases_free_memory(void)
{
  int m, at;
  for (m = 0; m < 3; m++) {
    Vmalloc_t *vm = vmopen(Vmdcsystem, methods[m], 0);
    void *blocks[1000];
    Vmstat_t before, after;
    for (at = 0; at < 1000; at++) blocks[at] = vmalloc(vm, 1000);
    for (at = 999; at > 0; at--) vmfree(vm, blocks[at]);
    if (m == 1) CHECK(vmclear(vm) == 0);
    CHECK(vmstat(vm, &before) == 0);
    CHECK(vmcompact(vm) == 0);
    CHECK(vmstat(vm, &after) == 0 && after.extent < before.extent / 4 && after.n_busy == before.n_busy);
    CHECK(vmclose(vm) == 0);
  }
  CHECK(vmcompact(NULL) == -1);
}

/* "vmnewof ... Additional space will be set to zero"; sizes that overflow are refused. */
static void vmnewof_and_vmoldof(void)
{
  struct pair {
    long first, second;
  } *pairs;
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, 0);
  pairs = vmnewof(vm, NULL, struct pair, 10, 5);
  CHECK(is_zero(pairs, 10 * sizeof *pairs + 5));
  pairs[9].second = 77;
  pairs = vmnewof(vm, pairs, struct pair, 1000, 0);
  CHECK(pairs[9].second == 77 && is_zero(pairs + 20, 980 * sizeof *pairs));
  CHECK((pairs = vmoldof(vm, pairs, struct pair, 2000, 0)) != NULL);
  FAILS_WITH(ENOMEM, vmnewof(vm, NULL, struct pair, SIZE_MAX / 8, 0));
  FAILS_WITH(ENOMEM, vmnewof(vm, NULL, struct pair, SIZE_MAX / 16, 16));
  FAILS_WITH(ENOMEM, vmalloc(vm, opaque(SIZE_MAX)));
  FAILS_WITH(ENOMEM, vmalloc(vm, opaque(SIZE_MAX - 15)));
  FAILS_WITH(ENOMEM, vmalloc(vm, opaque((size_t)PTRDIFF_MAX + 1)));
  FAILS_WITH(ENOMEM, vmalign(vm, opaque(SIZE_MAX - 64), 64));
  FAILS_WITH(ENOMEM, vmalign(vm, 8, opaque(SIZE_MAX / 2 + 1)));
  FAILS_WITH(ENOMEM, vmresize(vm, pairs, opaque(SIZE_MAX - 64), VM_RSMOVE));
  CHECK(vmclose(vm) == 0);
}

/* The five forms of vmgetmem. */
static void vmgetmem_does_all(void)
{
  Vmalloc_t *vm = (Vmalloc_t *)vmgetmem(NULL, NULL, 0);
  char *block = (char *)vmgetmem(vm, NULL, 100);
  CHECK(vm != NULL && vm->disc == Vmdcheap && (vmset(vm, 0, 0) & VM_METHODS) == VM_MTBEST);
  CHECK(is_zero(block, 100));
  memset(block, 1, 100);
  block = (char *)vmgetmem(vm, block, 10000);
  CHECK(block != NULL && block[99] == 1 && is_zero(block + 128, 10000 - 128));
  CHECK(vmgetmem(vm, block, 0) == NULL && vmsize(vm, block) == -1);
  CHECK(strcmp(vmstrdup(vm, "text"), "text") == 0 && vmstrdup(vm, NULL) == NULL);
  CHECK(vmgetmem(vm, NULL, 0) == NULL);
}

/* "vmaddr ... returns the offset from the beginning of the block"; "vmsize returns the size". */
static void vmaddr_and_vmsize(void)
{
  Vmalloc_t *best = vmopen(Vmdcheap, Vmbest, 0), *pool = vmopen(Vmdcheap, Vmpool, 0);
  char *block = (char *)vmalloc(best, 100), *element = (char *)vmalloc(pool, 24);
  CHECK(vmaddr(best, block) == 0 && vmaddr(best, block + 99) == 99 && vmsize(best, block) >= 100);
  CHECK(vmaddr(best, best) == -1 && vmaddr(best, NULL) == -1 && vmsize(best, block + 8) == -1);
  CHECK(vmaddr(pool, element + 23) == 23 && vmsize(pool, element) == 24 && vmsize(pool, block) == -1);
  CHECK(vmfree(best, block) == 0 && vmaddr(best, block) == -1);
  CHECK(vmaddr(NULL, block) == -1 && vmsize(NULL, block) == -1);
  CHECK(vmclose(best) == 0 && vmclose(pool) == 0);
}

/* "vmregion returns the region to which the block pointed to by addr belongs." */
static void vmregion_finds_the_region(void)
{
  Vmalloc_t *one = vmopen(Vmdcheap, Vmbest, 0), *two = vmopen(Vmdcsystem, Vmbest, 0);
  char *in_one = (char *)vmalloc(one, 10), *in_two = (char *)vmalloc(two, 10), *in_heap = (char *)malloc(10);
  CHECK(vmregion(in_one) == one && vmregion(in_two) == two && vmregion(in_heap) == Vmheap);
  CHECK(vmregion(in_one + 1) == NULL && vmregion(NULL) == NULL && vmregion(&in_one) == NULL);
  CHECK(vmfree(one, in_one) == 0 && vmregion(in_one) == NULL);
  CHECK(vmclose(two) == 0 && vmregion(in_two) == NULL);
  CHECK(vmclose(one) == 0);
  free(in_heap);
}

/* "vmsegment ... returns the address of a found segment or NULL if none found." */
static void vmsegment_finds_the_segment(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm;
  char *first, *second;
  it->skew = 5;
  vm = vmopen(&it->disc, Vmbest, 0);
  first = (char *)vmalloc(vm, 10);
  second = (char *)vmalloc(vm, 5000);
  CHECK(((size_t)vmsegment(vm, first) & 15) == 5 && (char *)vmsegment(vm, first) < it->bytes + 32);
  CHECK(vmsegment(vm, second) != vmsegment(vm, first) && (char *)vmsegment(vm, second) < second);
  CHECK(vmsegment(vm, &vm) == NULL && vmsegment(vm, NULL) == NULL && vmsegment(NULL, first) == NULL);
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* "Bookkeeping overhead is counted in extent, but not in s_busy or s_free." */
static void vmstat_counts(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmbest, VM_SHARE);
  Vmstat_t st;
  void *block = vmalloc(vm, 1000);
  CHECK(vmalloc(vm, 10) != NULL && vmalloc(vm, 100) != NULL && vmfree(vm, block) == 0);
  CHECK(vmstat(vm, &st) == 0);
  CHECK(st.n_busy == 2 && st.s_busy >= 110 && st.s_busy < 200 && st.m_busy >= 100 && st.m_busy < 150);
  CHECK(st.n_free == 2 && st.m_free >= 1000 && st.s_free >= st.m_free + 1000);
  CHECK(st.n_seg == 1 && st.extent >= 4096 && st.s_busy + st.s_free < st.extent);
  CHECK(st.n_region == 0 && st.n_open == 0 && st.n_lock == 0 && st.n_probe == 0);
  CHECK(st.mode == (VM_MTBEST | VM_SHARE));
  CHECK(vmstat(vm, NULL) == 0 && vmbusy(vm) == 0 && vmlocked(vm) == 0 && vmstat(NULL, NULL) == 0);
  CHECK(vmbusy(NULL) == -1 && vmlocked(NULL) == 0);
  CHECK(vmclose(vm) == 0);
}

/* "vmdata returns the core data of the given region." */
static void vmdata_lies_in_the_first_segment(void)
{
  Vmalloc_t *vm = vmopen(Vmdcsystem, Vmlast, 0);
  CHECK(vmdata(vm) == (void *)vm->data && vmsegment(vm, vmdata(vm)) != NULL && vmdata(NULL) == NULL);
  CHECK(vmclose(vm) == 0);
}

/* "setregmax() always returns the previous value." */
static void setregmax_returns_the_previous_value(void)
{
  CHECK(setregmax(10) == 64 && setregmax(100) == 10 && setregmax(-1) == 10);
  CHECK(setregmax(64) == 10 && setregmax(64) == 64);
}

int main(void)
{
  methods[0] = Vmbest;
  methods[1] = Vmlast;
  methods[2] = Vmpool;
  vmopen_fails_without_its_parts();
  vmset_returns_the_previous_flags();
  blocks_are_aligned_and_apart();
  vmalign_takes_any_alignment();
  vmresize_allocates_and_frees();
  vmresize_copies_and_clears();
  new_bytes_are_zero_whatever_was_there();
  a_block_of_no_bytes_grows_by_zeros();
  a_block_may_go_while_it_is_resized();
  vmfree_refuses_what_is_no_block();
  blocks_of_size_0();
  blocks_of_size_0_grow_with_zeros();
  vmlast_frees_the_latest();
  vmpool_has_one_size();
  vmclear_frees_all_blocks();
  vmcompact_releases_free_memory();
  vmnewof_and_vmoldof();
  vmgetmem_does_all();
  vmaddr_and_vmsize();
  vmregion_finds_the_region();
  vmsegment_finds_the_segment();
  vmstat_counts();
  vmdata_lies_in_the_first_segment();
  setregmax_returns_the_previous_value();
  puts("ok");
  return 0;
}
