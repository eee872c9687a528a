/* What a region keeps when a request fails. */
#include "region_check.h"

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
  puts("ok");
  return 0;
}
