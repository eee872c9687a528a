/* What a region keeps when a request fails, or when its discipline takes no memory back. */
#include "region_check.h"

static const int no_more = -1;

/* A request that fails leaves the size that was asked for the latest block of Vmlast as it is. */
static void a_failed_request_leaves_the_latest_block(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm;
  unsigned char *block, *next;
  it->returns[VM_NOMEM] = no_more;
  vm = vmopen(&it->disc, Vmlast, 0);
  block = (unsigned char *)vmalloc(vm, 100);
  memset(block, 7, 100);
  FAILS_WITH(ENOMEM, vmalign(vm, 1, opaque(SIZE_MAX / 4)));
  FAILS_WITH(ENOMEM, vmalloc(vm, opaque(SIZE_MAX / 4)));
  FAILS_WITH(ENOMEM, vmalloc(vm, 2 << 20));
  FAILS_WITH(ENOMEM, vmalign(vm, 1, 4 << 20));
  CHECK(vmresize(vm, block, 2 << 20, VM_RSCOPY) == NULL);
  block = (unsigned char *)vmresize(vm, block, 200, VM_RSCOPY | VM_RSZERO);
  CHECK(block != NULL && block[0] == 7 && block[99] == 7 && is_zero((char *)block + 100, 100));
  /* No bytes were skipped for the alignment, so the next block lies where the latest one did. */
  CHECK(vmfree(vm, block) == 0);
  next = (unsigned char *)vmalloc(vm, 200);
  CHECK(next == block && vmclose(vm) == 0);
  free(it);
}

/* A request that is too large for the empty segments of a cleared region leaves them for others. */
static void a_failed_request_leaves_empty_segments(void)
{
  Vmethod_t *methods[2];
  int m, at;
  methods[0] = Vmlast, methods[1] = Vmpool;
  for (m = 0; m < 2; m++) {
    struct recorder *it = recorder(64, REFUSES);
    Vmalloc_t *vm = vmopen(&it->disc, methods[m], 0);
    for (at = 0; at < 10; at++) CHECK(vmalloc(vm, 6000) != NULL);
    CHECK(vmclear(vm) == 0);
    it->left = 0;
    it->returns[VM_NOMEM] = no_more;
    FAILS_WITH(ENOMEM, vmalloc(vm, 7000));
    if (m == 1) CHECK(vmclear(vm) == 0);
    for (at = 0; at < 10; at++) CHECK(vmalloc(vm, 6000) != NULL);
    FAILS_WITH(ENOMEM, vmalloc(vm, 6000));
    CHECK(vmclose(vm) == 0);
    free(it);
  }
}

/* The size of a pool's blocks is that of the first one that there is. */
static void a_failed_request_sets_no_size(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmpool, 0);
  it->left = 0;
  it->returns[VM_NOMEM] = no_more;
  FAILS_WITH(ENOMEM, vmalloc(vm, 5000));
  CHECK(vmalloc(vm, 40) != NULL);
  FAILS_WITH(ENOMEM, vmalloc(vm, 48));
  CHECK(vmclose(vm) == 0);
  free(it);
}

static void *first_block;

static void free_a_block(Vmalloc_t *vm, int type, void *obj)
{
  (void)obj;
  if (type != VM_NOMEM) return;
  if (first_block == NULL) CHECK(vmclear(vm) == 0);
  else CHECK(vmfree(vm, first_block) == 0);
}

/* VM_NOMEM may free blocks of a pool, or all of them. */
static void vm_nomem_may_free_blocks_of_a_pool(int clears)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmpool, 0);
  void *block;
  first_block = vmalloc(vm, 40);
  it->left = 0;
  it->returns[VM_NOMEM] = no_more;
  while (vmalloc(vm, 40) != NULL) continue;
  block = first_block;
  if (clears) first_block = NULL;
  it->returns[VM_NOMEM] = 1;
  it->on_event = free_a_block;
  CHECK(clears ? vmsize(vm, vmalloc(vm, 40)) == 40 : vmalloc(vm, 40) == block);
  it->on_event = NULL;
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* A vmcompact whose memory the discipline does not take loses none: the same blocks fit again. */
static void memory_that_is_not_taken_back_is_used(Vmethod_t *method, int is_cleared)
{
  enum { SIZE = 600, COUNT = 40 };
  struct recorder *it = recorder(6000, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, method, 0);
  void *blocks[COUNT];
  Vmstat_t before, after;
  int at, fit = 0;
  for (at = 0; at < COUNT; at++) CHECK((blocks[at] = vmalloc(vm, SIZE)) != NULL);
  it->left = 0;
  it->returns[VM_NOMEM] = -1;
  while (vmalloc(vm, SIZE) != NULL) fit++;
  if (is_cleared) {
    /* One block sets the size of a pool's blocks, for vmstat. */
    CHECK(vmclear(vm) == 0 && vmalloc(vm, SIZE) != NULL);
    fit += COUNT - 1;
  } else {
    for (at = 0; at < COUNT; at++) CHECK(vmfree(vm, blocks[at]) == 0);
    fit = COUNT;
  }
  CHECK(vmstat(vm, &before) == 0);
  it->refuses_release = it->refuses_shorter = 1;
  for (at = 0; at < 3; at++) CHECK(vmcompact(vm) == 0);
  CHECK(vmstat(vm, &after) == 0 && after.n_busy == before.n_busy && after.s_busy == before.s_busy);
  CHECK(after.n_free == before.n_free && after.s_free == before.s_free && after.extent == before.extent);
  while (fit-- > 0) CHECK(vmalloc(vm, SIZE) != NULL);
  CHECK(vmalloc(vm, SIZE) == NULL);
  it->refuses_release = it->refuses_shorter = 0;
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* Blocks that VM_NOMEM frees, or makes shorter, the first time. */
static void *resized, *behind;
static size_t shortened;

static void change_the_block(Vmalloc_t *vm, int type, void *obj)
{
  struct recorder *it = (struct recorder *)vm->disc;
  (void)obj;
  if (type != VM_NOMEM) return;
  it->returns[VM_NOMEM] = resized == NULL ? -1 : 1;
  if (resized != NULL && shortened != 0) CHECK(vmresize(vm, resized, shortened, 0) == resized);
  else if (resized != NULL) CHECK(vmfree(vm, resized) == 0 && vmfree(vm, behind) == 0);
  resized = NULL;
}

/* A region whose segment has a block to be resized, another one behind it, and little else. */
static Vmalloc_t *full_region(struct recorder *it, Vmethod_t *method)
{
  Vmalloc_t *vm = vmopen(&it->disc, method, 0);
  resized = vmalloc(vm, 4000);
  behind = vmalloc(vm, 3000);
  CHECK(resized != NULL && behind != NULL && vmalloc(vm, 7500) != NULL);
  it->left = 0;
  it->on_event = change_the_block;
  return vm;
}

/* A block that is freed while it is resized is a bad address. The new block, which may lie in its place, is
 * freed. */
static void vm_nomem_may_free_the_resized_block(Vmethod_t *method, size_t more, size_t size)
{
  struct recorder *it = recorder(16384, REFUSES);
  Vmalloc_t *vm = full_region(it, method);
  void *block = resized;
  Vmstat_t st;
  it->more = more;
  FAILS_WITH(EINVAL, vmresize(vm, block, size, VM_RSCOPY));
  CHECK(resized == NULL && vmfree(vm, block) == -1 && vmfree(vm, behind) == -1);
  CHECK(vmcompact(vm) == 0 && vmdbcheck(vm) == 0 && vmstat(vm, &st) == 0 && st.n_busy == 1);
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* What lies behind a block that is made shorter while it is resized is another block's. */
static void vm_nomem_may_shorten_the_resized_block(Vmethod_t *method)
{
  struct recorder *it = recorder(16384, REFUSES);
  Vmalloc_t *vm = full_region(it, method);
  char *block = (char *)resized, *moved;
  fill(block, 4000, 1);
  shortened = 100;
  it->more = 100000;
  moved = (char *)vmresize(vm, block, 9000, VM_RSCOPY | VM_RSZERO);
  CHECK(moved != NULL && moved != block && is_filled(moved, 100, 1) && is_zero(moved + 100, 8900));
  shortened = 0;
  CHECK(vmfree(vm, block) == -1 && vmfree(vm, moved) == 0 && vmdbcheck(vm) == 0 && vmclose(vm) == 0);
  free(it);
}

/* Vmdebug keeps freed blocks for a while. VM_NOMEM is for a region that has no room without them either. */
static void vm_nomem_is_not_raised_while_freed_blocks_would_do(void)
{
  struct recorder *it = recorder(1024, GROWS);
  Vmalloc_t *vm;
  void *block, *other;
  Vmstat_t st;
  int round;
  it->left = 64 << 10;
  it->returns[VM_NOMEM] = -1;
  vm = vmopen(&it->disc, Vmdebug, 0);
  for (round = 0; round < 1000; round++) CHECK(vmfree(vm, vmalloc(vm, 1000)) == 0);
  for (round = 0; round < 100; round++) {
    block = vmalloc(vm, 30000);
    other = vmalloc(vm, 20000);
    CHECK(block != NULL && vmfree(vm, other) == 0);
    /* Only where it lies is there room, which is that of the freed block behind it. */
    CHECK(vmresize(vm, block, 45000, round % 2 == 0 ? VM_RSCOPY : 0) == block && vmfree(vm, block) == 0);
  }
  CHECK(strchr(it->log, 'n') == NULL);
  it->log[0] = 0;
  FAILS_WITH(ENOMEM, vmalloc(vm, 64 << 10));
  CHECK(strchr(it->log, 'n') != NULL && strchr(strchr(it->log, 'n') + 1, 'n') == NULL);
  CHECK(vmstat(vm, &st) == 0 && st.n_busy == 0 && st.n_free == 1 && vmdbcheck(vm) == 0 && vmclose(vm) == 0);
  free(it);
}

/* What VM_NOMEM frees is used for the request that is repeated, also by Vmdebug. */
static void free_the_rest(Vmalloc_t *vm, int type, void *obj)
{
  (void)obj;
  if (type == VM_NOMEM) CHECK(resized != NULL && vmfree(vm, resized) == 0);
  if (type == VM_NOMEM) resized = NULL;
}

static void vm_nomem_may_free_blocks_that_are_kept(void)
{
  struct recorder *it = recorder(1024, GROWS);
  Vmalloc_t *vm;
  int round;
  it->left = 64 << 10;
  it->returns[VM_NOMEM] = 1;
  vm = vmopen(&it->disc, Vmdebug, 0);
  it->on_event = free_the_rest;
  for (round = 0; round < 20; round++) {
    resized = vmalloc(vm, 40000);
    behind = vmalloc(vm, 41000);
    CHECK(behind != NULL && resized == NULL && vmfree(vm, behind) == 0);
  }
  CHECK(vmdbcheck(vm) == 0 && vmclose(vm) == 0);
  free(it);
}

int main(void)
{
  Vmethod_t *methods[3];
  int m;
  methods[0] = Vmbest, methods[1] = Vmdebug, methods[2] = Vmprofile;
  for (m = 0; m < 3; m++) {
    if (m == 1) vmdebug(-1);
    vm_nomem_may_free_the_resized_block(methods[m], 100000, 20000);
    vm_nomem_may_free_the_resized_block(methods[m], 0, 6000);
    vm_nomem_may_shorten_the_resized_block(methods[m]);
  }
  vm_nomem_is_not_raised_while_freed_blocks_would_do();
  vm_nomem_may_free_blocks_that_are_kept();
  a_failed_request_leaves_the_latest_block();
  a_failed_request_leaves_empty_segments();
  a_failed_request_sets_no_size();
  vm_nomem_may_free_blocks_of_a_pool(0);
  vm_nomem_may_free_blocks_of_a_pool(1);
  memory_that_is_not_taken_back_is_used(Vmpool, 0);
  memory_that_is_not_taken_back_is_used(Vmpool, 1);
  memory_that_is_not_taken_back_is_used(Vmlast, 1);
  memory_that_is_not_taken_back_is_used(Vmbest, 0);
  puts("ok");
  return 0;
}
