// Exceptions out of functions of the program: walkf, and exceptf for each event. Nothing stays locked.
#include "vmalloc.h"
#include <cstdio>
#include <cstdlib>
#include <thread>

#define CHECK(what) \
  do { \
    if (!(what)) { \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
      std::_Exit(1); \
    } \
  } while (0)

static int thrown;

static int walk(Vmalloc_t *, void *, size_t, Vmdisc_t *, void *)
{
  throw 1;
}

static int tell(Vmalloc_t *, int type, void *, Vmdisc_t *)
{
  if (type == thrown) throw type;
  return 0;
}

static void *provide(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *)
{
  return nsz > 100000 ? NULL : Vmdcsystem->memoryf(vm, addr, csz, nsz, Vmdcsystem);
}

// Another thread opens a region, walks over all, and uses one that threads share.
static void let_a_thread_work(Vmalloc_t *shared)
{
  std::thread([shared] {
    Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, 0);
    CHECK(vm != NULL && vmregion(vmalloc(vm, 10)) == vm && vmclose(vm) == 0);
    CHECK(vmfree(shared, vmalloc(shared, 10)) == 0);
  }).join();
}

template <typename Call>
static void throws(int what, Vmalloc_t *shared, Call call)
{
  int caught = 0;
  thrown = what;
  try {
    call();
  } catch (int value) {
    caught = value;
  }
  thrown = 0;
  CHECK(caught == what && vmbusy(shared) == 0);
  let_a_thread_work(shared);
}

int main()
{
  Vmethod_t *const methods[] = {Vmbest, Vmdebug, Vmprofile, Vmlast};
  vmdebug(-1);
  for (Vmethod_t *method : methods) {
    Vmdisc_t disc = {provide, tell, 0, 0}, other = disc;
    Vmalloc_t *vm = vmopen(&disc, method, VM_SHARE | VM_ANNOUNCE);
    CHECK(vm != NULL);
    throws(1, vm, [vm] { vmwalk(vm, walk, NULL); });
    throws(1, vm, [] { vmwalk(NULL, walk, NULL); });
    throws(VM_OPEN, vm, [&] { vmopen(&disc, method, 0); });
    throws(VM_DISC, vm, [&] { vmdisc(vm, &other); });
    throws(VM_NOMEM, vm, [vm] { vmalloc(vm, 200000); });
    throws(VM_NOMEM, vm, [vm] { vmresize(vm, vmalloc(vm, 10), 200000, VM_RSCOPY); });
    throws(VM_ALLOC, vm, [vm] { vmalloc(vm, 10); });
    throws(VM_RESIZE, vm, [vm] { vmresize(vm, vmalloc(vm, 10), 20, VM_RSCOPY); });
    throws(VM_FREE, vm, [vm] { vmfree(vm, vmalloc(vm, 10)); });
    if (method != Vmlast) throws(VM_BADADDR, vm, [&] { vmfree(vm, &disc); });
    throws(VM_CLOSE, vm, [vm] { vmclose(vm); });
    CHECK(vmdbcheck(vm) <= 0 && vmclose(vm) == 0);
  }
  std::puts("ok");
  return 0;
}
