/* The list of open regions, and walks over their segments. */
#include "region_check.h"
#include <pthread.h>
#include <setjmp.h>

enum { REGIONS = 40 };
static Vmalloc_t *regions[REGIONS];
static int seen[REGIONS], heap_seen, order_ok = 1, last_seen;

static int index_of(Vmalloc_t *vm)
{
  int at;
  for (at = 0; at < REGIONS; at++)
    if (regions[at] == vm) return at;
  return -1;
}

static int count_segment(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  int at = index_of(vm);
  Vmstat_t st;
  CHECK(handle == regions && disc == vm->disc && size > 0);
  if (at >= 0) {
    seen[at]++;
    CHECK(vmsegment(vm, segment) == segment && vmsegment(vm, (char *)segment + size - 1) == segment);
    /* Vmheap first, then from the newest to the oldest. The region is not locked. */
    order_ok &= heap_seen > 0 && at <= last_seen;
    last_seen = at;
    CHECK(vmstat(vm, &st) == 0 && vmfree(vm, vmalloc(vm, 10)) == 0);
  }
  heap_seen += vm == Vmheap;
  return 1;
}

/* "if region is NULL, all segments in all regions" */
static void walks_meet_all_segments(void)
{
  int at, block;
  Vmstat_t st;
  last_seen = REGIONS;
  for (at = 0; at < REGIONS; at++) {
    struct recorder *it = recorder(64, REFUSES);
    regions[at] = vmopen(&it->disc, Vmbest, at % 2 == 0 ? VM_SHARE : 0);
    for (block = 0; block < at * 3; block++) CHECK(vmalloc(regions[at], 2000) != NULL);
  }
  CHECK(vmwalk(NULL, count_segment, regions) == 0);
  CHECK(order_ok);
  for (at = 0; at < REGIONS; at++) {
    CHECK(vmstat(regions[at], &st) == 0 && seen[at] == st.n_seg && st.n_seg > at * 2);
    seen[at] = 0;
    CHECK(vmwalk(regions[at], count_segment, regions) == 0 && seen[at] == st.n_seg);
  }
}

static int stop_at(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  (void)segment, (void)size, (void)disc;
  ++*(int *)handle;
  return vm == regions[7] ? -3 : 5;
}

/* "If walkf returns a negative value, the walk stops and returns the same value." */
static void a_negative_answer_ends_the_walk(void)
{
  int calls = 0, all;
  CHECK(vmwalk(NULL, stop_at, &calls) == -3);
  all = calls;
  calls = 0;
  CHECK(vmwalk(regions[7], stop_at, &calls) == -3 && calls == 1 && all > REGIONS);
}

static int close_it(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  int at = index_of(vm);
  (void)segment, (void)size;
  if (at < 0) return 0;
  regions[at] = NULL;
  ++*(int *)handle;
  CHECK(vmclose(vm) == 0);
  free(disc);
  return 0;
}

/* A walk whose function closes the region ends there; one over all regions goes on with the others. */
static void the_function_may_close_the_region(void)
{
  int closed = 0;
  CHECK(vmwalk(regions[3], close_it, &closed) == 0 && closed == 1);
  CHECK(vmwalk(NULL, close_it, &closed) == 0 && closed == REGIONS);
}

static int met[REGIONS], expected[REGIONS], strangers, changes;

/* Closes in turn the region that was met before, the region itself, and the next one, and opens others, one of
 * which has the handle of the closed one. */
static int replace(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  int at = index_of(vm), other = at + 1 - changes++ % 3;
  (void)segment, (void)size, (void)disc, (void)handle;
  if (at >= 0) met[at]++;
  else strangers += vm != Vmheap;
  if (at >= 0 && other >= 0 && other < REGIONS && regions[other] != NULL) {
    if (other < at) expected[other] = 0;
    CHECK(vmclose(regions[other]) == 0);
    regions[other] = NULL;
  }
  CHECK(vmopen(Vmdcheap, Vmbest, 0) != NULL && vmopen(Vmdcheap, Vmlast, 0) != NULL);
  return 0;
}

static int close_any(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  (void)segment, (void)size, (void)disc, (void)handle;
  return vm == Vmheap ? 0 : vmclose(vm);
}

/* Each region that is still open is met once, whichever others go and come meanwhile. */
static void regions_may_come_and_go_meanwhile(void)
{
  int at;
  for (at = 0; at < REGIONS; at++) {
    regions[at] = vmopen(Vmdcheap, Vmbest, 0);
    expected[at] = 1;
  }
  CHECK(vmwalk(NULL, replace, NULL) == 0 && strangers == 0);
  for (at = 0; at < REGIONS; at++) CHECK(met[at] == expected[at]);
  CHECK(vmwalk(NULL, close_any, NULL) == 0 && Vmheap->next == NULL);
}

static void *open_a_region(void *unused)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, 0);
  CHECK(vm != NULL && vmregion(vmalloc(vm, 10)) == vm && vmclose(vm) == 0);
  return unused;
}

static void let_a_thread_open_a_region(void)
{
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, open_a_region, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static jmp_buf out;

static int wait_for_a_thread(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  (void)vm, (void)segment, (void)size, (void)disc;
  let_a_thread_open_a_region();
  if (handle != NULL) longjmp(out, 1);
  return 0;
}

/* Nothing is locked while the function runs, so it may wait for another thread, and need not return. */
static void the_function_may_wait_and_jump(int is_shared)
{
  Vmalloc_t *vm = vmopen(Vmdcheap, Vmbest, is_shared ? VM_SHARE : 0);
  CHECK(vmwalk(vm, wait_for_a_thread, NULL) == 0 && vmwalk(NULL, wait_for_a_thread, NULL) == 0);
  if (setjmp(out) == 0) vmwalk(vm, wait_for_a_thread, &out);
  let_a_thread_open_a_region();
  if (setjmp(out) == 0) vmwalk(NULL, wait_for_a_thread, &out);
  let_a_thread_open_a_region();
  CHECK(vmalloc(vm, 10) != NULL && vmclose(vm) == 0);
}

static void the_list_has_all_open_regions(void)
{
  Vmalloc_t *one, *two, *three;
  CHECK(Vmheap->next == NULL);
  one = vmopen(Vmdcheap, Vmbest, 0);
  two = vmopen(Vmdcheap, Vmpool, 0);
  three = vmopen(Vmdcheap, Vmlast, 0);
  CHECK(Vmheap->next == three && three->next == two && two->next == one && one->next == NULL);
  CHECK(vmclose(two) == 0 && three->next == one);
  CHECK(vmclose(three) == 0 && vmclose(one) == 0 && Vmheap->next == NULL);
}

int main(void)
{
  the_list_has_all_open_regions();
  walks_meet_all_segments();
  a_negative_answer_ends_the_walk();
  the_function_may_close_the_region();
  regions_may_come_and_go_meanwhile();
  the_function_may_wait_and_jump(0);
  the_function_may_wait_and_jump(1);
  the_list_has_all_open_regions();
  puts("ok");
  return 0;
}
