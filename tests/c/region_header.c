/*
 * vmalloc.h alone: layouts, numbers and types. -DVMFL: with recorded positions; -DFIRST, -DLAST: with
 * other headers before it, or after it. The program is compiled and not run.
 */
#ifdef FIRST
#include "lumalloc.h"
#include <stdio.h>
#endif
#include "vmalloc.h"
#ifdef LAST
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "lumalloc.h"
#include <stdio.h>
#endif

/* A static assertion of C89: an array of a negative size does not compile. */
#define CHECK(name, condition) extern char check_##name[(condition) ? 1 : -1]
#define CHECK_SIZE(type, size) CHECK(size_of_##type, sizeof(type) == (size))
/* A member has this offset and this type. */
#define CHECK_MEMBER(struct_name, kind, member, offset) \
  CHECK(struct_name##_##member, offsetof(struct_name, member) == (offset)); \
  kind *get_##struct_name##_##member(struct_name *it); \
  kind *get_##struct_name##_##member(struct_name *it) \
  { \
    return &it->member; \
  } \
  extern char check_##struct_name##_##member[1]

CHECK_SIZE(Vmdisc_t, 32);
CHECK_MEMBER(Vmdisc_t, Vmemory_f, memoryf, 0);
CHECK_MEMBER(Vmdisc_t, Vmexcept_f, exceptf, 8);
CHECK_MEMBER(Vmdisc_t, size_t, round, 16);
CHECK_MEMBER(Vmdisc_t, size_t, size, 24);

typedef void *(*Alloc_f)(Vmalloc_t *, size_t, int);
typedef void *(*Resize_f)(Vmalloc_t *, void *, size_t, int, int);
typedef int (*Free_f)(Vmalloc_t *, void *, int);
typedef long (*Long_f)(Vmalloc_t *, void *, int);
typedef int (*Compact_f)(Vmalloc_t *, int);
typedef void *(*Align_f)(Vmalloc_t *, size_t, size_t, int);
CHECK_SIZE(Vmethod_t, 64);
CHECK_MEMBER(Vmethod_t, Alloc_f, allocf, 0);
CHECK_MEMBER(Vmethod_t, Resize_f, resizef, 8);
CHECK_MEMBER(Vmethod_t, Free_f, freef, 16);
CHECK_MEMBER(Vmethod_t, Long_f, addrf, 24);
CHECK_MEMBER(Vmethod_t, Long_f, sizef, 32);
CHECK_MEMBER(Vmethod_t, Compact_f, compactf, 40);
CHECK_MEMBER(Vmethod_t, Align_f, alignf, 48);
CHECK_MEMBER(Vmethod_t, unsigned short, meth, 56);

CHECK_SIZE(Vmalloc_t, 112);
CHECK_MEMBER(Vmalloc_t, Vmethod_t, meth, 0);
CHECK_MEMBER(Vmalloc_t, char *, file, 64);
CHECK_MEMBER(Vmalloc_t, int, line, 72);
CHECK_MEMBER(Vmalloc_t, char *, func, 80);
CHECK_MEMBER(Vmalloc_t, Vmdisc_t *, disc, 88);
CHECK_MEMBER(Vmalloc_t, Vmdata_t *, data, 96);
CHECK_MEMBER(Vmalloc_t, Vmalloc_t *, next, 104);

CHECK_SIZE(Vmstat_t, 80);
CHECK_MEMBER(Vmstat_t, int, n_busy, 0);
CHECK_MEMBER(Vmstat_t, int, n_free, 4);
CHECK_MEMBER(Vmstat_t, size_t, s_busy, 8);
CHECK_MEMBER(Vmstat_t, size_t, s_free, 16);
CHECK_MEMBER(Vmstat_t, size_t, m_busy, 24);
CHECK_MEMBER(Vmstat_t, size_t, m_free, 32);
CHECK_MEMBER(Vmstat_t, int, n_seg, 40);
CHECK_MEMBER(Vmstat_t, size_t, extent, 48);
CHECK_MEMBER(Vmstat_t, int, n_region, 56);
CHECK_MEMBER(Vmstat_t, int, n_open, 60);
CHECK_MEMBER(Vmstat_t, int, n_lock, 64);
CHECK_MEMBER(Vmstat_t, int, n_probe, 68);
CHECK_MEMBER(Vmstat_t, int, mode, 72);

/* Numbers of the 2011 library. Each can stand in #if. */
#if VMALLOC_VERSION != 20110808L || VM_BADADDR != -1
#error "a number is wrong"
#endif
CHECK(trust, VM_TRUST == 0 && VM_TRACE == 1 && VM_DBCHECK == 2 && VM_DBABORT == 4);
CHECK(share, VM_SHARE == 8 && VM_MEMORYF == 16 && VM_FLAGS == 15 && VM_ANNOUNCE == 32768);
CHECK(methods, VM_MTBEST == 64 && VM_MTPOOL == 128 && VM_MTLAST == 256);
CHECK(more_methods, VM_MTDEBUG == 512 && VM_MTPROFILE == 1024 && VM_METHODS == 1984);
CHECK(resize, VM_RSCOPY == 1 && VM_RSMOVE == 2 && VM_RSZERO == 4);
CHECK(opening, VM_OPEN == 1 && VM_ENDOPEN == 2 && VM_CLOSE == 3 && VM_ENDCLOSE == 4);
CHECK(events, VM_DISC == 5 && VM_NOMEM == 6 && VM_BADADDR == -1);
CHECK(announced, VM_ALLOC == 7 && VM_FREE == 8 && VM_RESIZE == 9);

/* Each variable may be assigned. */
Vmalloc_t **check_vmheap = &Vmheap;
Vmdisc_t **check_vmdcsystem = &Vmdcsystem;
Vmdisc_t **check_vmdcsbrk = &Vmdcsbrk;
Vmdisc_t **check_vmdcheap = &Vmdcheap;
Vmethod_t **check_vmbest = &Vmbest;
Vmethod_t **check_vmlast = &Vmlast;
Vmethod_t **check_vmpool = &Vmpool;
Vmethod_t **check_vmdebug_method = &Vmdebug;
Vmethod_t **check_vmprofile_method = &Vmprofile;

/* Each name is a function of the documented type, also where a macro has the name. */
typedef int (*Walk_f)(Vmalloc_t *, void *, size_t, Vmdisc_t *, void *);
Vmalloc_t *(*check_vmopen)(Vmdisc_t *, Vmethod_t *, int) = vmopen;
int (*check_vmclose)(Vmalloc_t *) = vmclose;
int (*check_vmclear)(Vmalloc_t *) = vmclear;
int (*check_vmcompact)(Vmalloc_t *) = vmcompact;
int (*check_vmset)(Vmalloc_t *, int, int) = vmset;
Vmdisc_t *(*check_vmdisc)(Vmalloc_t *, Vmdisc_t *) = vmdisc;

void *(*check_vmalloc)(Vmalloc_t *, size_t) = vmalloc;
void *(*check_vmalign)(Vmalloc_t *, size_t, size_t) = vmalign;
void *(*check_vmresize)(Vmalloc_t *, void *, size_t, int) = vmresize;
int (*check_vmfree)(Vmalloc_t *, void *) = vmfree;
size_t (*check_vmnewsize)(size_t, size_t, size_t) = vmnewsize;
void *(*check_vmgetmem)(Vmalloc_t *, void *, size_t) = vmgetmem;
char *(*check_vmstrdup)(Vmalloc_t *, const char *) = vmstrdup;

Vmalloc_t *(*check_vmregion)(void *) = vmregion;
void *(*check_vmsegment)(Vmalloc_t *, void *) = vmsegment;
int (*check_vmwalk)(Vmalloc_t *, Walk_f, void *) = vmwalk;
long (*check_vmaddr)(Vmalloc_t *, void *) = vmaddr;
long (*check_vmsize)(Vmalloc_t *, void *) = vmsize;
int (*check_vmstat)(Vmalloc_t *, Vmstat_t *) = vmstat;
int (*check_vmbusy)(Vmalloc_t *) = vmbusy;
unsigned int (*check_vmlocked)(Vmalloc_t *) = vmlocked;
void *(*check_vmdata)(Vmalloc_t *) = vmdata;
int (*check_vmname)(Vmalloc_t *, const char *) = vmname;

int (*check_vmtrace)(int) = vmtrace;
int (*check_vmtrbusy)(Vmalloc_t *) = vmtrbusy;

int (*check_vmdebug)(int) = vmdebug;
int (*check_vmdbcheck)(Vmalloc_t *) = vmdbcheck;
void *(*check_vmdbwatch)(void *) = vmdbwatch;

int (*check_vmprofile)(Vmalloc_t *, int) = vmprofile;

Vmalloc_t *(*check_vmmopen)(const char *, int, ssize_t) = vmmopen;
Vmalloc_t *(*check_vmmopenat)(const char *, void *, size_t) = vmmopenat;
void *(*check_vmmvalue)(Vmalloc_t *, int, void *, int) = vmmvalue;
void *(*check_vmmset)(Vmalloc_t *, int, void *, int) = vmmset;
void *(*check_vmmcleanup)(Vmalloc_t *) = vmmcleanup;
void (*check_vmmrelease)(Vmalloc_t *, int) = vmmrelease;
void *(*check_vmmaddress)(size_t) = vmmaddress;

int (*check_setregmax)(int) = setregmax;
void (*check_cfree)(void *) = cfree;
void (*check_vmfileline)(const char *, int, const char *) = vmfileline;

/* Disciplines with two and three members, as old programs write them. */
static void *no_memory(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *disc)
{
  (void)vm, (void)addr, (void)csz, (void)nsz, (void)disc;
  return NULL;
}

static int no_event(Vmalloc_t *vm, int type, Void_t *obj, Vmdisc_t *disc)
{
  (void)vm, (void)type, (void)obj, (void)disc;
  return 0;
}

struct counted {
  Vmdisc_t disc;
  int count;
};

struct counted check_counted = {{no_memory, no_event, 64, sizeof(struct counted)}, 0};

/* Members, parameters and variables may have the names of malloc's functions. */
struct hooks {
  void *(*malloc)(size_t);
  void *(*realloc)(void *, size_t);
  void (*free)(void *);
};

struct hooks check_hooks = {malloc, realloc, free};

static void through_hooks(struct hooks *hooks)
{
  void *(*calloc)(size_t, size_t) = NULL;
  void *block = hooks->malloc(10);
  block = hooks->realloc(block, 20);
  hooks->free(block);
  (hooks->free)(NULL);
  (void)calloc;
}

typedef struct {
  char *name;
  int number;
} Item;

/* The macros in use. */
static int use(Vmalloc_t *vm, size_t size)
{
  int freed = 0;
  Item *items = vmnewof(vm, NULL, Item, size, 3);
  void *block = vmalign(vm, vmsize(vm, vmoldof(vm, items, Item, size++, 0)) > 0 ? 5 : 6, 64);
  block = vmresize(vm, block == NULL ? vmalloc(vm, 1) : vmalloc(vm, 2), sizeof(Item), VM_RSMOVE | VM_RSCOPY);
  if (block == NULL) freed = vmfree(vm, NULL);
  else freed += vmfree(vm, block) + vmfree(vm, vmalloc(vm, 3));
  items = (Item *)realloc(calloc(malloc(1) != NULL, 10), sizeof(Item));
  free(items);
  cfree(memalign(64, size));
  free(valloc(1));
  free(NULL);
  free((strdup)("text"));
  return freed;
}

int main(void)
{
  through_hooks(&check_hooks);
  return use(Vmheap, 1);
}
