/* What the programs region_* share: a discipline that records each call of it. */
#ifndef REGION_CHECK_H_
#define REGION_CHECK_H_

#include "api_check.h"
#include "vmalloc.h"

/* The way in which a recorder extends a segment. */
enum growth { REFUSES, GROWS, ADDS };

/* A discipline over a buffer, with a log of its calls. */
struct recorder {
  Vmdisc_t disc;
  enum growth growth;
  /* What exceptf returns, by event; index 0 stands for VM_BADADDR. */
  int returns[10];
  /* What VM_OPEN stores. */
  void *stored;
  /* Bytes that memoryf still hands out, and how many there are more after VM_NOMEM. */
  size_t left, more;
  /* How many bytes behind a multiple of 16 segments begin. */
  size_t skew;
  int refuses_release, refuses_shorter;
  /* Called in each event, if any. */
  void (*on_event)(Vmalloc_t *vm, int type, void *obj);
  /* Called by memoryf, if any. */
  void (*on_memory)(Vmalloc_t *vm);
  size_t used;
  /* The calls so far, a letter each. */
  char log[4096];
  char bytes[1 << 20];
};

static inline void record(struct recorder *it, char what)
{
  size_t length = strlen(it->log);
  if (length + 1 < sizeof it->log) {
    it->log[length] = what;
    it->log[length + 1] = 0;
  }
}

/* m: memory asked for, x: extended, s: shortened, r: released; in upper case when it was refused. */
static inline void *recorder_memory(Vmalloc_t *vm, void *addr, size_t csz, size_t nsz, Vmdisc_t *disc)
{
  struct recorder *it = (struct recorder *)disc;
  char *end = it->bytes + it->used;
  size_t more = nsz > csz ? nsz - csz : 0;
  int is_new = csz == 0 || (it->growth == ADDS && more > 0);
  char what = csz == 0 ? 'm' : nsz == 0 ? 'r' : more > 0 ? 'x' : 's';
  if (it->on_memory != NULL) it->on_memory(vm);
  if (disc->round != 0) CHECK(csz % disc->round == 0 && nsz % disc->round == 0);
  if (more > it->left || more + 64 > sizeof it->bytes - it->used || (csz != 0 && more > 0 && it->growth == REFUSES)) {
    record(it, (char)(what - 'a' + 'A'));
    return NULL;
  }
  if (nsz == 0 ? it->refuses_release : nsz < csz && it->refuses_shorter) {
    record(it, (char)(what - 'a' + 'A'));
    return NULL;
  }
  if (is_new) {
    /* The next place with this skew. */
    size_t skip = (16 + it->skew - (size_t)end % 16) % 16;
    addr = end + skip;
    memset(addr, 0xee, more);
    it->used += skip + more;
  } else if (more > 0) {
    if ((char *)addr + csz != end) {
      record(it, 'X');
      return NULL;
    }
    it->used += more;
  }
  it->left -= more;
  record(it, what);
  return addr;
}

/* o: VM_OPEN, O: VM_ENDOPEN, c: VM_CLOSE, C: VM_ENDCLOSE, d: VM_DISC, n: VM_NOMEM, b: VM_BADADDR. */
static inline int recorder_event(Vmalloc_t *vm, int type, void *obj, Vmdisc_t *disc)
{
  struct recorder *it = (struct recorder *)disc;
  static const char letters[] = "boOcCdnafz";
  int index = type == VM_BADADDR ? 0 : type;
  CHECK(index >= 0 && index < 10);
  record(it, letters[index]);
  if (it->on_event != NULL) it->on_event(vm, type, obj);
  if (type == VM_OPEN) {
    CHECK(*(void **)obj == NULL);
    *(void **)obj = it->stored;
  }
  if (type == VM_NOMEM) it->left += it->more;
  return it->returns[index];
}

/* A recorder with room for everything. */
static inline struct recorder *recorder(size_t round, enum growth growth)
{
  struct recorder *it = (struct recorder *)calloc(1, sizeof *it);
  CHECK(it != NULL);
  it->disc.memoryf = recorder_memory;
  it->disc.exceptf = recorder_event;
  it->disc.round = round;
  it->growth = growth;
  it->left = sizeof it->bytes;
  return it;
}

static inline void expect_log(struct recorder *it, const char *expected)
{
  if (strcmp(it->log, expected) != 0) {
    fprintf(stderr, "the log is \"%s\", not \"%s\"\n", it->log, expected);
    _Exit(1);
  }
  it->log[0] = 0;
}

/* Functions that a thread allocates with. `state` is a random number. */
struct functions {
  void *(*allocate)(size_t size, unsigned state);
  void *(*resize)(void *block, size_t size);
  void (*release)(void *block);
  /* The largest size after a change. */
  unsigned largest;
};

/* Allocates, resizes and frees blocks in random order, with a mark at both ends of each. */
static inline void use_blocks(const struct functions *functions, size_t seed, int rounds)
{
  enum { SLOTS = 60 };
  unsigned char *blocks[SLOTS] = {NULL}, mark = (unsigned char)seed;
  size_t sizes[SLOTS] = {0};
  unsigned state = (unsigned)seed * 2654435761u + 1;
  int round, at;
  for (round = 0; round < rounds; round++) {
    state = state * 1103515245u + 12345;
    at = (int)(state >> 16) % SLOTS;
    if (blocks[at] != NULL) {
      CHECK(blocks[at][0] == mark && blocks[at][sizes[at] - 1] == mark);
      if (state % 5 == 0) {
        size_t size = state % functions->largest + 1;
        blocks[at] = (unsigned char *)functions->resize(blocks[at], size);
        CHECK(blocks[at] != NULL && blocks[at][0] == mark);
        sizes[at] = size;
        blocks[at][size - 1] = mark;
        continue;
      }
      functions->release(blocks[at]);
    }
    sizes[at] = (state >> 8) % 200 + 1;
    blocks[at] = (unsigned char *)functions->allocate(sizes[at], state);
    CHECK(blocks[at] != NULL);
    memset(blocks[at], mark, sizes[at]);
  }
  for (at = 0; at < SLOTS; at++)
    if (blocks[at] != NULL) functions->release(blocks[at]);
}

#endif
