/* What sampling costs: sampling WAY BLOCKS LEAST SPAN TURNS, under lumalloc with prof:true. A turn of
 * a loop that only allocates, from three functions deep, runs with one sample in 512 KiB, and
 * another without any; which is first alternates. Blocks have LEAST to LEAST + SPAN - 1 bytes.
 *
 *   begun     allocates all blocks, writes the first byte of each; they are freed between the turns,
 *             and their memory goes back to the system
 *   written   the same, and writes all bytes
 *   pairs     frees a block at a random place and allocates another there, ten for each place
 *   untouched allocates all blocks, then frees all, and writes to none
 *
 * Prints the nanoseconds of a block without samples, the median and the quartiles of the ratios of
 * the two turns, and how many samples a turn has on average. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_TURNS 1000
enum way { BEGUN, WRITTEN, PAIRS, UNTOUCHED, WAYS };
static const char *const names[WAYS] = {"begun", "written", "pairs", "untouched"};

typedef int ctl_function(const char *, void *, size_t *, void *, size_t);
static ctl_function *ctl;
static void **slots;
static long blocks;
static size_t least, span;
static uint32_t state = 1;

static uint32_t next(void) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

__attribute__((noinline)) static void *leaf(size_t size) {
  void *block = malloc(size);
  if (block == NULL)
    abort();
  return block;
}

#define DEEPER(name, callee)                                    \
  __attribute__((noinline)) static void *name(size_t size) {    \
    void *block = callee(size);                                 \
    __asm__ volatile("" : "+r"(block));                         \
    return block;                                               \
  }

DEEPER(one, leaf)
DEEPER(two, one)

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static void allocate(enum way way) {
  for (long n = 0; n < blocks; n++) {
    size_t size = least + next() % span;
    char *block = slots[n] = two(size);
    if (way == BEGUN)
      *block = 1;
    else if (way == WRITTEN)
      memset(block, 1, size);
  }
}

static void free_all(void) {
  for (long n = 0; n < blocks; n++) {
    free(slots[n]);
    slots[n] = NULL;
  }
}

static void replace(void) {
  for (long n = 0; n < 10 * blocks; n++) {
    void **slot = &slots[next() % blocks];
    free(*slot);
    *slot = two(least + next() % span);
  }
}

static double turn(enum way way, size_t lg_sample) {
  if (ctl("prof.reset", NULL, NULL, &lg_sample, sizeof lg_sample) != 0)
    abort();
  double begin = now();
  if (way == PAIRS)
    replace();
  else
    allocate(way);
  if (way == UNTOUCHED)
    free_all();
  double end = now();
  if (way == BEGUN || way == WRITTEN) {
    free_all();
    ctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    ctl("arena.4096.purge", NULL, NULL, NULL, 0);
  }
  return end - begin;
}

static int compare(const void *one, const void *other) {
  double difference = *(const double *)one - *(const double *)other;
  return (difference > 0) - (difference < 0);
}

int main(int count, char **words) {
  static double without[MOST_TURNS], ratios[MOST_TURNS];
  int way = 0;
  if (count != 6)
    return 2;
  while (way < WAYS && strcmp(words[1], names[way]) != 0)
    way++;
  blocks = atol(words[2]);
  least = strtoul(words[3], NULL, 10);
  span = strtoul(words[4], NULL, 10);
  int turns = atoi(words[5]);
  ctl = (ctl_function *)dlsym(RTLD_DEFAULT, "mallctl");
  slots = calloc(blocks, sizeof *slots);
  if (way == WAYS || turns < 1 || turns > MOST_TURNS || ctl == NULL || slots == NULL)
    return 2;
  turn(way, 40);
  for (int n = 0; n < turns; n++) {
    double with = n % 2 == 0 ? turn(way, 19) : 0;
    without[n] = turn(way, 40);
    if (n % 2 != 0)
      with = turn(way, 19);
    ratios[n] = with / without[n];
  }
  qsort(without, turns, sizeof *without, compare);
  qsort(ratios, turns, sizeof *ratios, compare);
  double many = way == PAIRS ? 10.0 * blocks : blocks;
  printf("sampling %.2f %.4f %.4f %.4f %.1f\n", without[turns / 2] / many, ratios[turns / 2],
         ratios[turns / 4], ratios[turns * 3 / 4], many * (least + (span - 1) / 2.0) / (1 << 19));
  return 0;
}
