// Threads allocate and free blocks of argv[2] bytes while the process ends. Every call is right, so that the hardened
// tier has nothing to report.
//
//   fork  children of a process with such a thread call exit
//   late  a thread makes its first allocation while main returns
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

int main(int argc, char **argv)
{
  if (argc != 4) return 2;
  size = strtoul(argv[2], NULL, 10);
  int rounds = atoi(argv[3]), failed = 0;
  int is_late = !strcmp(argv[1], "late");
  if (is_late) {
    // What is looked at when a child exits.
    for (int i = 0; i < 100000; i++) {
      void *block = malloc(1000);
      __asm__ volatile("" : : "r"(block) : "memory");
    }
  } else {
    begin();
  }
  for (int i = 0; i < rounds; i++) {
    pid_t child = fork();
    if (child == 0) {
      delay = i % 10 * 500000 + 100000;
      if (is_late) begin();
      exit(0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 4;
    failed += status != 0;
  }
  printf("failed=%d\n", failed);
  fflush(stdout);
  _exit(0);
}
