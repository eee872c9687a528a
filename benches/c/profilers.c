/* What recording each allocation costs: profilers PAIRS WORK THREADS. Blocks of 8 to 519 bytes are
 * replaced at random places, from six functions deep; WORK is how often a number is changed between
 * two pairs. Prints the nanoseconds of a pair. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SLOTS 20000

static long pairs, work;

__attribute__((noinline)) static void *leaf(size_t size) {
  char *block = malloc(size);
  if (block == NULL)
    abort();
  *block = 1;
  return block;
}

#define DEEPER(name, callee)                                    \
  __attribute__((noinline)) static void *name(size_t size) {    \
    void *block = callee(size);                                 \
    __asm__ volatile("");                                       \
    return block;                                               \
  }

DEEPER(one, leaf)
DEEPER(two, one)
DEEPER(three, two)
DEEPER(four, three)
DEEPER(five, four)

static void *run(void *seed) {
  uint32_t random = (uint32_t)(uintptr_t)seed;
  void **slots = calloc(SLOTS, sizeof *slots);
  if (slots == NULL)
    abort();
  for (long n = 0; n < pairs; n++) {
    random = random * 1664525 + 1013904223;
    void **slot = &slots[(random >> 8) % SLOTS];
    free(*slot);
    *slot = five(8 + (random >> 16) % 512);
    for (long m = 0; m < work; m++) {
      random = random * 1664525 + 1013904223;
      __asm__ volatile("" : "+r"(random));
    }
  }
  for (int n = 0; n < SLOTS; n++)
    free(slots[n]);
  free(slots);
  return NULL;
}

int main(int count, char **words) {
  pthread_t threads[64];
  struct timespec begin, end;
  long many = count == 4 ? atol(words[3]) : 0;
  if (many < 1 || many > 64)
    return 2;
  pairs = atol(words[1]);
  work = atol(words[2]);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long n = 0; n < many; n++)
    if (pthread_create(&threads[n], NULL, run, (void *)(n + 1)) != 0)
      return 1;
  for (long n = 0; n < many; n++)
    pthread_join(threads[n], NULL);
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ns = (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
  printf("pair %.2f\n", ns / pairs);
  return 0;
}
