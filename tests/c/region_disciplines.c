/* Disciplines of the program: what they are asked, in which order, and what their answers do. */
#include "region_check.h"

static Vmethod_t *methods[3];

/* "This event is raised at the start of the process to open a new region", and the others in order. */
static void events_come_in_order(void)
{
  int m;
  for (m = 0; m < 3; m++) {
    struct recorder *it = recorder(0, REFUSES);
    Vmalloc_t *vm = vmopen(&it->disc, methods[m], 0);
    expect_log(it, "omO");
    CHECK(vm != NULL && vm->disc == &it->disc);
    CHECK(vmalloc(vm, 10) != NULL);
    CHECK(vmclose(vm) == 0);
    expect_log(it, "crC");
    free(it);
  }
}

/* "On a negative return value, vmopen will terminate with failure." */
static void vm_open_can_refuse(void)
{
  struct recorder *it = recorder(0, REFUSES);
  it->returns[VM_OPEN] = -1;
  FAILS_WITH(EINVAL, vmopen(&it->disc, Vmbest, 0));
  expect_log(it, "o");
  it->returns[VM_OPEN] = 0;
  it->left = 100;
  FAILS_WITH(ENOMEM, vmopen(&it->disc, Vmbest, 0));
  expect_log(it, "oM");
  free(it);
}

/* "exceptf may set *((Void_t**)obj) to some non-NULL value to tell vmopen to allocate the region handle
 * itself via memoryf. Otherwise, the region handle will be allocated from the Vmheap region." */
static void the_handle_can_lie_in_the_region(void)
{
  int m;
  for (m = 0; m < 3; m++) {
    struct recorder *it = recorder(64, GROWS);
    Vmalloc_t *vm;
    it->stored = it;
    vm = vmopen(&it->disc, methods[m], 0);
    CHECK((char *)vm >= it->bytes && (char *)vm < it->bytes + sizeof it->bytes);
    CHECK(vmsegment(vm, vm) != NULL && (vmset(vm, 0, 0) & VM_MEMORYF) != 0);
    CHECK(vmalloc(vm, 100) != NULL && vmclear(vm) == 0 && vmalloc(vm, 100) != NULL);
    CHECK(vmclose(vm) == 0);
    expect_log(it, "omOcrC");
    it->stored = NULL;
    vm = vmopen(&it->disc, methods[m], 0);
    CHECK(vmregion(vm) == Vmheap && (vmset(vm, 0, 0) & VM_MEMORYF) == 0);
    CHECK(vmclose(vm) == 0);
    free(it);
  }
}

static int see_none(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  (void)vm, (void)segment, (void)size, (void)disc, (void)handle;
  return 0;
}

/* "On a positive return value, vmclose will only free the region without deallocating the associated
 * memory segments." "On a positive return value, the new region is being reconstructed based on existing
 * states of some previous region." */
static void a_region_can_be_opened_again(int handle_inside)
{
  int m;
  for (m = 0; m < 3; m++) {
    struct recorder *it = recorder(64, GROWS);
    Vmalloc_t *vm, *again;
    char *block;
    void *data;
    Vmstat_t st;
    it->stored = handle_inside ? it : NULL;
    vm = vmopen(&it->disc, methods[m], 0);
    block = (char *)vmalloc(vm, 100);
    strcpy(block, "still here");
    data = vmdata(vm);
    if (handle_inside) {
      /* The place of its handle is taken as long as the region is open. */
      it->returns[VM_OPEN] = 1;
      it->stored = data;
      FAILS_WITH(EBUSY, vmopen(&it->disc, methods[m], VM_TRACE));
      CHECK((vmset(vm, 0, 0) & VM_TRACE) == 0 && vmwalk(NULL, see_none, NULL) == 0);
    }
    it->returns[VM_CLOSE] = 1;
    it->log[0] = 0;
    CHECK(vmclose(vm) == 0);
    expect_log(it, "cC");
    it->returns[VM_OPEN] = 1;
    it->stored = data;
    /* Another method, and none at all. */
    FAILS_WITH(EINVAL, vmopen(&it->disc, methods[(m + 1) % 3], 0));
    it->stored = NULL;
    FAILS_WITH(EINVAL, vmopen(&it->disc, methods[m], 0));
    it->stored = it->bytes + 300000;
    FAILS_WITH(EINVAL, vmopen(&it->disc, methods[m], 0));
    it->stored = (char *)data + 1;
    FAILS_WITH(EINVAL, vmopen(&it->disc, methods[m], 0));
    it->stored = data;
    it->log[0] = 0;
    again = vmopen(&it->disc, methods[m], 0);
    expect_log(it, "oO");
    CHECK(again != NULL && vmdata(again) == data && (!handle_inside || again == vm));
    CHECK(vmstat(again, &st) == 0 && st.n_busy == 1 && strcmp(block, "still here") == 0);
    CHECK(vmalloc(again, 100) != NULL && vmsize(again, block) == (m == 1 ? -1 : vmsize(again, block)));
    it->returns[VM_CLOSE] = 0;
    it->log[0] = 0;
    CHECK(vmclose(again) == 0);
    expect_log(it, "crC");
    /* The memory is as it was, but there is no region in it any more. */
    it->log[0] = 0;
    FAILS_WITH(EINVAL, vmopen(&it->disc, methods[m], 0));
    free(it);
  }
}

/* "On a negative return value, vmclose immediately returns with failure." */
static void vm_close_can_refuse(void)
{
  struct recorder *it = recorder(0, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, 0);
  it->returns[VM_CLOSE] = -1;
  CHECK(vmclose(vm) == -1 && vmalloc(vm, 10) != NULL && vmregion(vmalloc(vm, 10)) == vm);
  it->returns[VM_CLOSE] = 0;
  CHECK(vmclose(vm) == 0 && vmclose(NULL) == -1 && vmclose(Vmheap) == -1);
  free(it);
}

/* "The first segment obtained from the discipline's memoryf function will be the last released." */
static char *released[100];
static int count;

static void *note_release(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *disc)
{
  if (nsz == 0) released[count++] = (char *)addr;
  return recorder_memory(vm, addr, csz, nsz, disc);
}

static void segments_are_released_in_order(void)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm;
  int at;
  it->disc.memoryf = note_release;
  vm = vmopen(&it->disc, Vmbest, 0);
  for (at = 0; at < 20; at++) CHECK(vmalloc(vm, 3000) != NULL);
  CHECK(vmclose(vm) == 0 && count >= 20);
  for (at = 1; at < count; at++) CHECK(released[at] < released[at - 1]);
  free(it);
}

/* "If the function returns a positive value the memory request will be repeated." (2011) With 0 memoryf
 * is asked once more (1998), and with a negative number the request fails. */
static void vm_nomem_answers(void)
{
  static const char *const logs[] = {"MnM", "Mn", "Mnm", "Mnm"};
  static const int answers[] = {0, -1, 0, 1};
  int at;
  for (at = 0; at < 4; at++) {
    struct recorder *it = recorder(64, REFUSES);
    Vmalloc_t *vm = vmopen(&it->disc, Vmbest, 0);
    void *block;
    it->left = 0;
    it->more = at < 2 ? 0 : 100000;
    it->returns[VM_NOMEM] = answers[at];
    it->log[0] = 0;
    errno = 0;
    block = vmalloc(vm, 5000);
    CHECK(at < 2 ? block == NULL && errno == ENOMEM : block != NULL);
    /* The newest segment is asked to grow before each new one. */
    {
      char short_log[100];
      size_t from, to = 0;
      for (from = 0; it->log[from] != 0; from++)
        if (it->log[from] != 'X') short_log[to++] = it->log[from];
      short_log[to] = 0;
      strcpy(it->log, short_log);
    }
    expect_log(it, logs[at]);
    CHECK(vmclose(vm) == 0);
    free(it);
  }
}

/* "The region is unlocked, so the exceptf function may free blocks." */
static void *spare;

static void free_the_spare(Vmalloc_t *vm, int type, void *obj)
{
  if (type != VM_NOMEM) return;
  CHECK((size_t)obj >= 5000 && vmbusy(vm) == 0);
  CHECK(vmfree(vm, spare) == 0);
  spare = NULL;
}

static void vm_nomem_may_free_blocks(int flags)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, flags);
  char *block;
  spare = vmalloc(vm, 6000);
  it->left = 0;
  it->on_event = free_the_spare;
  it->returns[VM_NOMEM] = 1;
  block = (char *)vmalloc(vm, 5000);
  CHECK(block != NULL && spare == NULL);
  fill(block, 5000, 1);
  it->on_event = NULL;
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* A discipline that clears the region in VM_NOMEM gets a region that works. */
static void clear(Vmalloc_t *vm, int type, void *obj)
{
  (void)obj;
  if (type == VM_NOMEM) CHECK(vmclear(vm) == 0);
}

static void vm_nomem_may_clear(void)
{
  struct recorder *it = recorder(64, REFUSES);
  int m, at;
  for (m = 0; m < 2; m++) {
    Vmalloc_t *vm = vmopen(&it->disc, methods[m], 0);
    for (at = 0; at < 10; at++) CHECK(vmalloc(vm, 6000) != NULL);
    it->left = 0;
    it->on_event = clear;
    it->returns[VM_NOMEM] = 1;
    for (at = 0; at < 40; at++) CHECK(vmalloc(vm, 5000) != NULL);
    it->on_event = NULL;
    it->left = sizeof it->bytes - it->used;
    CHECK(vmclose(vm) == 0);
  }
  free(it);
}

/* "vmdisc changes the discipline of region to the given new discipline disc if disc is not NULL and its
 * memoryf function is the same ... This function always returns the current discipline." */
static void vmdisc_changes_the_discipline(void)
{
  struct recorder *one = recorder(0, REFUSES), *two = recorder(0, REFUSES);
  Vmalloc_t *vm = vmopen(&one->disc, Vmbest, 0);
  CHECK(vmdisc(vm, NULL) == &one->disc && vmdisc(NULL, NULL) == NULL);
  CHECK(vmdisc(vm, Vmdcheap) == &one->disc);
  one->log[0] = 0;
  one->returns[VM_DISC] = 1;
  CHECK(vmdisc(vm, &two->disc) == &one->disc);
  expect_log(one, "d");
  one->returns[VM_DISC] = 0;
  CHECK(vmdisc(vm, &two->disc) == &two->disc && vm->disc == &two->disc);
  expect_log(one, "d");
  CHECK(vmclose(vm) == 0);
  expect_log(two, "crC");
  free(one);
  free(two);
}

/* "If this value is positive, all size arguments to the memoryf function will be multiples of it." The
 * recorder checks that. Segments may begin anywhere, and extensions may be other segments. */
static void any_round_any_address_any_growth(void)
{
  static const size_t rounds[] = {0, 1, 64, 127, 1000, 4096};
  static const size_t skews[] = {0, 1, 8, 15};
  int m, r, s, g, at;
  for (m = 0; m < 3; m++)
    for (r = 0; r < 6; r++)
      for (s = 0; s < 4; s++)
        for (g = REFUSES; g <= ADDS; g++) {
          struct recorder *it = recorder(rounds[r], (enum growth)g);
          unsigned char *blocks[150];
          Vmalloc_t *vm;
          it->skew = skews[s];
          vm = vmopen(&it->disc, methods[m], 0);
          for (at = 0; at < 150; at++) {
            size_t size = m == 2 ? 70 : (size_t)(at * 37 % 900 + 1);
            blocks[at] = (unsigned char *)vmalloc(vm, size);
            CHECK(blocks[at] != NULL && is_aligned(blocks[at], 16) && vmsegment(vm, blocks[at]) != NULL);
            memset(blocks[at], at, size);
            if (at % 3 == 0) vmfree(vm, blocks[at]);
          }
          for (at = 0; at < 150; at++)
            if (at % 3 != 0) CHECK(blocks[at][0] == at);
          CHECK(vmcompact(vm) == 0);
          it->refuses_release = 1;
          CHECK(vmclear(vm) == 0 && vmcompact(vm) == 0);
          it->refuses_release = 0;
          CHECK(vmcompact(vm) == 0 && vmalloc(vm, 70) != NULL);
          CHECK(vmclose(vm) == 0);
          free(it);
        }
}

/* With a discipline of the program the first request is about one KiB. */
static void the_first_request_is_small(void)
{
  static const size_t rounds[] = {64, 127, 0, 4096}, sizes[] = {1088, 2032, 4096, 4096};
  int m, r;
  for (m = 0; m < 3; m++)
    for (r = 0; r < 4; r++) {
      struct recorder *it = recorder(rounds[r], REFUSES);
      Vmalloc_t *vm = vmopen(&it->disc, methods[m], 0);
      Vmstat_t st;
      CHECK(vmstat(vm, &st) == 0 && st.n_seg == 1);
      if (m != 0) CHECK(st.extent == sizes[r]);
      CHECK(st.extent <= 2 * sizes[r]);
      CHECK(vmclose(vm) == 0);
      free(it);
    }
}

/* "Automatic locking prevents interference by reentrant access to a region." */
static void *inner;
static int inner_result;

static void use_the_region(Vmalloc_t *vm)
{
  if (vm->data == NULL) return;
  errno = 0;
  inner = vmalloc(vm, 10);
  CHECK(errno == EBUSY);
  inner_result = vmfree(vm, NULL) + vmclear(vm) + vmcompact(vm) + vmclose(vm);
  CHECK(vmbusy(vm) == 1 && vmstat(vm, NULL) == 1 && vmlocked(vm) == 1);
}

static void a_call_from_inside_a_call_fails(int flags)
{
  struct recorder *it = recorder(64, REFUSES);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, flags);
  it->on_memory = use_the_region;
  inner = vm;
  CHECK(vmalloc(vm, 5000) != NULL && inner == NULL && inner_result == -3);
  it->on_memory = NULL;
  CHECK(vmbusy(vm) == 0 && vmalloc(vm, 10) != NULL);
  CHECK(vmclose(vm) == 0);
  free(it);
}

/* VM_ALLOC, VM_FREE and VM_RESIZE (1998) with VM_ANNOUNCE. */
static void *announced;

static void keep_block(Vmalloc_t *vm, int type, void *obj)
{
  CHECK(vmbusy(vm) == 0);
  if (type >= VM_ALLOC) announced = obj;
}

static void successful_calls_are_announced(void)
{
  struct recorder *it = recorder(0, GROWS);
  Vmalloc_t *vm = vmopen(&it->disc, Vmbest, VM_ANNOUNCE);
  void *block;
  it->on_event = keep_block;
  it->log[0] = 0;
  block = vmalloc(vm, 10);
  CHECK(announced == block);
  block = vmresize(vm, block, 2000, VM_RSMOVE);
  CHECK(announced == block && vmfree(vm, block) == 0 && announced == block);
  block = vmalign(vm, 10, 64);
  CHECK(announced == block && vmfree(vm, &block) == -1 && vmresize(vm, block, SIZE_MAX, 0) == NULL);
  expect_log(it, "azfab");
  it->on_event = NULL;
  CHECK(vmclose(vm) == 0);
  vm = vmopen(&it->disc, Vmbest, 0);
  it->log[0] = 0;
  CHECK(vmfree(vm, vmalloc(vm, 10)) == 0);
  expect_log(it, "");
  CHECK(vmclose(vm) == 0);
  free(it);
}

int main(void)
{
  methods[0] = Vmbest;
  methods[1] = Vmlast;
  methods[2] = Vmpool;
  events_come_in_order();
  vm_open_can_refuse();
  the_handle_can_lie_in_the_region();
  a_region_can_be_opened_again(0);
  a_region_can_be_opened_again(1);
  vm_close_can_refuse();
  segments_are_released_in_order();
  vm_nomem_answers();
  vm_nomem_may_free_blocks(0);
  vm_nomem_may_free_blocks(VM_SHARE);
  vm_nomem_may_clear();
  vmdisc_changes_the_discipline();
  any_round_any_address_any_growth();
  the_first_request_is_small();
  a_call_from_inside_a_call_fails(0);
  a_call_from_inside_a_call_fails(VM_SHARE);
  successful_calls_are_announced();
  puts("ok");
  return 0;
}
