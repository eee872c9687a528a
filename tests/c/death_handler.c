/* A program whose handler of SIGABRT allocates, as a crash reporter does: death_handler SIZE WHERE.
 * WHERE says what finds that a block was freed twice. If it is `busy`, that is the exit, and two threads request and
 * free 3 GiB while the handler waits. */
#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *kept;
static volatile int is_handled;

static void say(const char *text) {
  if (write(2, text, strlen(text)) < 0)
    _exit(3);
}

static void check(int holds, const char *what) {
  if (!holds) {
    say(what);
    _exit(4);
  }
}

static void *in_thread(void *block) {
  char *own = malloc(100000);
  check(own != NULL, "malloc of another thread");
  free(own);
  free(block);
  return NULL;
}

static pthread_t busy[2];

static void *is_busy(void *unused) {
  for (long n = 0; n < 25000; n++) {
    char *block = malloc(60000 + n % 7 * 10000), *aligned = aligned_alloc(4096, 4096);
    check(block != NULL && aligned != NULL, "malloc of a busy thread");
    block[0] = aligned[0] = 1;
    free(aligned);
    free(block);
  }
  return unused;
}

static void *begins_late(void *unused) {
  while (!is_handled)
    usleep(100);
  return is_busy(unused);
}

static void handler(int signal_number) {
  is_handled = 1;
  for (int n = 0; n < 2 && busy[n] != 0; n++)
    pthread_join(busy[n], NULL);
  void *frames[50];
  char **names = backtrace_symbols(frames, backtrace(frames, 50));
  check(names != NULL, "backtrace_symbols");
  free(names);
  size_t sizes[] = {1, 100, 5000, 100000, 3000000};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    char *block = malloc(sizes[n]);
    check(block != NULL && malloc_usable_size(block) >= sizes[n], "malloc");
    memset(block, 'b', sizes[n]);
    char *longer = realloc(block, 2 * sizes[n]);
    check(longer != NULL && longer[sizes[n] - 1] == 'b', "realloc");
    free(longer);
    char *zeroed = calloc(1, sizes[n]);
    check(zeroed != NULL && zeroed[sizes[n] - 1] == 0, "calloc");
    free(zeroed);
    void *aligned = aligned_alloc(4096, sizes[n]);
    check((uintptr_t)aligned % 4096 == 0 && aligned != NULL, "aligned_alloc");
    free(aligned);
  }
  /* A block from before. */
  kept = realloc(kept, 60000);
  check(kept != NULL && strcmp(kept, "from before") == 0, "realloc of a block from before");
  free(kept);
  pid_t child = fork();
  if (child == 0) {
    char *block = malloc(200);
    check(block != NULL, "malloc in a child");
    free(block);
    execl("/bin/echo", "echo", "reported", NULL);
    _exit(5);
  }
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "the child");
  pthread_t thread;
  check(pthread_create(&thread, NULL, in_thread, malloc(10)) == 0, "pthread_create");
  pthread_join(thread, NULL);
  say("handled\n");
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

static void *twice(void *size) {
  char *volatile block = malloc((size_t)size);
  free(block);
  free(block);
  return NULL;
}

int main(int count, char **words) {
  if (count != 3)
    return 2;
  size_t size = strtoul(words[1], NULL, 10);
  kept = strcpy(malloc(12), "from before");
  void *frames[2];
  backtrace(frames, 2); /* loads the library that it needs */
  signal(SIGABRT, handler);
  if (strcmp(words[2], "busy") == 0)
    for (int n = 0; n < 2; n++)
      pthread_create(&busy[n], NULL, begins_late, NULL);
  if (strcmp(words[2], "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, twice, (void *)size);
    pthread_join(thread, NULL);
  } else {
    twice((void *)size);
  }
  if (strcmp(words[2], "flush") == 0) {
    static void *blocks[20000];
    for (int n = 0; n < 20000; n++)
      blocks[n] = malloc(size);
    for (int n = 0; n < 20000; n++)
      free(blocks[n]);
  }
  return 0; /* found at exit, at the latest */
}
