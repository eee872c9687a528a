// Threads allocate and free blocks of argv[2] bytes while the process ends. Every call is right, so that the hardened
// tier has nothing to report.
//
//   fork  argv[3] children of a process with such a thread call exit
//   late  a thread makes its first allocation argv[3] microseconds after it begins, while main returns
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
  // What is looked at at the exit.
  for (int i = 0; i < 100000; i++) {
    void *block = malloc(1000);
    __asm__ volatile("" : : "r"(block) : "memory");
  }
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
  if (strcmp(argv[1], "late")) return forks(number);
  delay = number * 1000L;
  return late();
}
