// Threads allocate and free blocks of argv[2] bytes while the process ends. Every call is right, so that the hardened
// tier has nothing to report.
//
//   fork  argv[3] children of a process with such a thread call exit
//   late  a thread makes its first allocation argv[3] microseconds after it begins, while main returns
//   last  a thread allocates when it ends, after the library has taken its cache, and main returns argv[3]
//         microseconds later
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static size_t size;
static long delay;

static void *busy(void *unused)
{
  (void)unused;
  struct timespec pause = {0, delay};
  nanosleep(&pause, NULL);
  for (;;) {
    void *block = malloc(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
  }
  return NULL;
}

static volatile int ends;

static void at_end(void *unused)
{
  ends = 1;
  busy(unused);
}

static void *ending(void *key)
{
  // The thread gets a cache.
  void *first = malloc(size);
  __asm__ volatile("" : : "r"(first) : "memory");
  free(first);
  pthread_setspecific(*(pthread_key_t *)key, key);
  return NULL;
}

static void fill(void)
{
  // What is looked at at the exit.
  for (int i = 0; i < 100000; i++) {
    void *block = malloc(1000);
    __asm__ volatile("" : : "r"(block) : "memory");
  }
}

static int last(void)
{
  fill();
  // The library made its key at the first allocation, so its destructor runs before this one.
  static pthread_key_t key;
  pthread_t thread;
  if (pthread_key_create(&key, at_end) || pthread_create(&thread, NULL, ending, &key)) return 3;
  while (!ends) usleep(10);
  struct timespec pause = {0, delay};
  delay = 0;
  nanosleep(&pause, NULL);
  return 0;
}

static void begin(void)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, busy, NULL)) exit(3);
}

static int late(void)
{
  // The thread's blocks come from a slab that is there already.
  void *first = malloc(size);
  __asm__ volatile("" : : "r"(first) : "memory");
  free(first);
  fill();
  begin();
  return 0;
}

static int forks(int rounds)
{
  int failed = 0;
  begin();
  for (int i = 0; i < rounds; i++) {
    pid_t child = fork();
    if (child == 0) exit(0);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 4;
    failed += status != 0;
  }
  fprintf(stderr, "%d failed", failed);
  _exit(failed != 0);
}

int main(int argc, char **argv)
{
  if (argc != 4) return 2;
  size = strtoul(argv[2], NULL, 10);
  int number = atoi(argv[3]);
  if (strcmp(argv[1], "fork") == 0) return forks(number);
  delay = number * 1000L;
  return strcmp(argv[1], "late") ? last() : late();
}
