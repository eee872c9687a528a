/* The handle that a discipline sees before a region has memory, and after: it can be asked, and changes nothing. */
#include "region_check.h"

static int asked, is_closing;

/* Asks everything that there is to ask. errno is EBUSY where a call fails. */
static void ask(Vmalloc_t *vm, int flag)
{
  static char place[16];
  Vmstat_t st;
  asked++;
  CHECK(vm->data == NULL && vmdata(vm) == NULL && vmset(vm, 0, 0) == flag);
  CHECK(vmset(vm, VM_TRACE | VM_SHARE, 1) == flag && vmset(vm, 0, 0) == flag);
  CHECK(vmbusy(vm) == 1 && vmlocked(vm) == 1 && vmstat(vm, NULL) == 1);
  FAILS_WITH(EBUSY, vmalloc(vm, 1));
  FAILS_WITH(EBUSY, vmalign(vm, 1, 64));
  FAILS_WITH(EBUSY, vmresize(vm, place, 1, VM_RSCOPY));
  FAILS_WITH(EBUSY, vmresize(vm, NULL, 1, VM_RSZERO));
  FAILS_WITH(EBUSY, vmstrdup(vm, "text"));
  FAILS_WITH(EBUSY, vmgetmem(vm, NULL, 10));
  errno = 0;
  CHECK(vmfree(vm, place) == -1 && errno == EBUSY);
  errno = 0;
  CHECK(vmcompact(vm) == -1 && errno == EBUSY);
  errno = 0;
  CHECK(vmclear(vm) == -1 && errno == EBUSY);
  errno = 0;
  CHECK(vmclose(vm) == -1 && errno == EBUSY);
  errno = 0;
  CHECK(vmstat(vm, &st) == -1 && errno == EBUSY);
  CHECK(vmaddr(vm, place) == -1 && vmsize(vm, place) == -1 && vmsegment(vm, place) == NULL);
  CHECK(vmmvalue(vm, 1, place, VM_MMSET) == NULL && vmmset(vm, 1, place, 1) == NULL);
  CHECK(vmdbcheck(vm) == -1 && vmtrbusy(vm) == -1 && vmname(vm, "name") == -1);
  CHECK(vmregion(place) == NULL && vmdisc(vm, NULL) == vm->disc && vmmcleanup(vm) == NULL);
}

static int method_bit;

static void *ask_first(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *disc)
{
  struct recorder *it = (struct recorder *)disc;
  if (csz == 0 && it->used == 0) ask(vm, method_bit);
  return recorder_memory(vm, addr, csz, nsz, disc);
}

static void ask_at_event(Vmalloc_t *vm, int type, void *obj)
{
  (void)obj;
  if (type == VM_OPEN || (type == VM_ENDCLOSE && is_closing)) ask(vm, method_bit);
  else CHECK((vmset(vm, 0, 0) & VM_METHODS) == method_bit && vmdata(vm) != NULL);
}

/* Memory that was released is gone, and so is a handle in it. */
static void forget(struct recorder *it)
{
  memset(it->bytes, 0xaa, sizeof it->bytes);
}

static void *forget_released(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *disc)
{
  void *result = ask_first(vm, addr, csz, nsz, disc);
  if (nsz == 0) forget((struct recorder *)disc);
  return result;
}

static void a_stand_in_can_be_asked(Vmethod_t *method, int bit, int flags, int is_inside)
{
  struct recorder *it = recorder(64, GROWS);
  Vmalloc_t *vm;
  void *data;
  method_bit = bit;
  asked = 0;
  it->disc.memoryf = forget_released;
  it->on_event = ask_at_event;
  it->stored = is_inside ? it : NULL;
  is_closing = 0;
  vm = vmopen(&it->disc, method, flags);
  CHECK(vm != NULL && asked == 2 && vmset(vm, 0, 0) == (bit | flags | (is_inside ? VM_MEMORYF : 0)));
  CHECK(vmalloc(vm, 100) != NULL);
  /* The region stays, and with it what the handle tells. */
  data = vmdata(vm);
  it->returns[VM_CLOSE] = 1;
  CHECK(vmclose(vm) == 0 && asked == 2);
  it->stored = data;
  it->returns[VM_OPEN] = 1;
  vm = vmopen(&it->disc, method, flags);
  CHECK(vm != NULL && asked == 3 && vmalloc(vm, 100) != NULL);
  it->returns[VM_CLOSE] = 0;
  is_closing = 1;
  CHECK(vmclose(vm) == 0 && asked == 4);
  free(it);
}

int main(void)
{
  Vmethod_t *const methods[] = {Vmbest, Vmlast, Vmpool, Vmdebug, Vmprofile};
  static const int bits[] = {VM_MTBEST, VM_MTLAST, VM_MTPOOL, VM_MTDEBUG, VM_MTPROFILE};
  int m, way;
  for (m = 0; m < 5; m++)
    for (way = 0; way < 4; way++)
      a_stand_in_can_be_asked(methods[m], bits[m], way % 2 == 0 ? 0 : VM_SHARE, way / 2);
  puts("ok");
  return 0;
}
