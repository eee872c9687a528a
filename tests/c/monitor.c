/* What the heap monitor is to record: how much is what the first argument says. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lumalloc.h"

/* The library is preloaded. */
#pragma weak lumalloc_monitor_start
#pragma weak lumalloc_monitor_stop
#pragma weak mallctl

#define CHECK(fact)                                                    \
  do {                                                                 \
    if (!(fact)) {                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);       \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

struct node {
  long value;
  struct node *next;
};

__attribute__((noinline)) struct node *make_node(long value, struct node *next) {
  struct node *node = malloc(sizeof *node);
  node->value = value;
  node->next = next;
  return node;
}

__attribute__((noinline)) void drop_node(struct node *node) {
  free(node);
  __asm__ volatile("");
}

__attribute__((noinline)) static void *work(void *count) {
  struct node *list = NULL;
  for (long n = 1; n <= (long)count; n++)
    list = make_node(n, list);
  while (list != NULL) {
    struct node *next = list->next;
    drop_node(list);
    list = next;
  }
  return NULL;
}

static void *old[3];

static bool active(void) {
  bool active;
  size_t length = sizeof active;
  CHECK(mallctl("monitor.active", &active, &length, NULL, 0) == 0);
  return active;
}

static uint64_t counted(const char *name) {
  uint64_t count;
  size_t length = sizeof count;
  CHECK(mallctl(name, &count, &length, NULL, 0) == 0);
  return count;
}

/* Two threads with 1000 nodes each, and blocks that were there before. */
static void record(const char *file) {
  pthread_t threads[2];
  old[0] = malloc(48);
  memset(old[0], 0, 48);
  old[1] = malloc(100000);
  old[2] = malloc(0);
  CHECK(lumalloc_monitor_start(file) == 0);
  CHECK(lumalloc_monitor_start(file) == EBUSY && active());
  for (int n = 0; n < 2; n++)
    CHECK(pthread_create(&threads[n], NULL, work, (void *)1000) == 0);
  for (int n = 0; n < 2; n++)
    CHECK(pthread_join(threads[n], NULL) == 0);
  free(old[1]);
  free(old[2]);
  old[2] = malloc(777);
  memset(old[2], 0, 777);
  CHECK(lumalloc_monitor_stop() == 0);
  CHECK(lumalloc_monitor_stop() == EAGAIN && !active());
  CHECK(counted("monitor.events") >= 4002 && counted("monitor.dropped") == 0);
}

/* The same by keys, and what they refuse. */
static void by_keys(const char *file) {
  const char *nowhere = "/nowhere/at/all.events", *empty = "";
  CHECK(mallctl("monitor.stop", NULL, NULL, NULL, 0) == EAGAIN);
  CHECK(mallctl("monitor.start", NULL, NULL, &nowhere, sizeof nowhere) == EFAULT);
  CHECK(lumalloc_monitor_start(nowhere) == ENOENT && !active());
  CHECK(lumalloc_monitor_start(empty) == EINVAL && !active());
  char long_name[8192];
  memset(long_name, 'x', sizeof long_name);
  long_name[sizeof long_name - 1] = '\0';
  CHECK(lumalloc_monitor_start(long_name) == EINVAL);
  CHECK(mallctl("monitor.start", NULL, NULL, &file, sizeof file) == 0);
  CHECK(mallctl("monitor.start", NULL, NULL, NULL, 0) == EBUSY);
  free(malloc(10));
  uint64_t recordings = counted("monitor.recordings");
  CHECK(recordings > 0);
  CHECK(mallctl("monitor.stop", NULL, NULL, NULL, 0) == 0);
  CHECK(counted("monitor.recordings") == recordings);
  CHECK(mallctl("monitor.start", NULL, NULL, NULL, 0) == 0);
  CHECK(counted("monitor.recordings") == recordings + 1);
  CHECK(mallctl("monitor.stop", NULL, NULL, NULL, 0) == 0);
  struct rlimit limit = {20000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
  const char *part = "part.events";
  CHECK(mallctl("monitor.start", NULL, NULL, &part, sizeof part) == 0);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  work((void *)5000);
  CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
  CHECK(mallctl("monitor.stop", NULL, NULL, NULL, 0) == EFAULT && !active());
}

/* A child of fork records nothing, unless it begins to. */
static void forks(const char *file) {
  char other[4096];
  snprintf(other, sizeof other, "%s.child", file);
  CHECK(lumalloc_monitor_start(file) == 0);
  work((void *)600);
  pid_t child = fork();
  if (child == 0) {
    CHECK(!active() && lumalloc_monitor_stop() == EAGAIN);
    work((void *)600);
    CHECK(lumalloc_monitor_start(other) == 0);
    work((void *)10);
    CHECK(lumalloc_monitor_stop() == 0);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  work((void *)600);
  CHECK(lumalloc_monitor_stop() == 0);
}

/* The file may not grow beyond a limit. */
static void full(const char *file) {
  struct rlimit limit = {20000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK(lumalloc_monitor_start(file) == 0);
  work((void *)5000);
  CHECK(counted("monitor.dropped") > 0);
  CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
  work((void *)500);
  CHECK(lumalloc_monitor_stop() == EFBIG && !active());
  CHECK(counted("monitor.dropped") > 0 && counted("monitor.events") > 500);
}

/* No further file can be opened, then the file's descriptor is closed, and another file has its number. */
static void no_descriptors(const char *file) {
  enum { MOST = 256 };
  struct rlimit limit = {MOST, MOST};
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(lumalloc_monitor_start(file) == 0);
  while (open("/dev/null", O_WRONLY) >= 0) {}
  work((void *)5000);
  CHECK(counted("monitor.events") > 5000 && counted("monitor.dropped") == 0);
  for (int number = 3; number < MOST; number++)
    close(number);
  FILE *others[MOST];
  int count = 0;
  for (; count < MOST && (others[count] = tmpfile()) != NULL; count++) {}
  CHECK(count > MOST - 10);
  fclose(others[--count]);
  work((void *)5000);
  CHECK(counted("monitor.events") > 15000 && counted("monitor.dropped") == 0);
  while (count > 0) {
    count--;
    CHECK(fseek(others[count], 0, SEEK_END) == 0 && ftell(others[count]) == 0);
    fclose(others[count]);
  }
  CHECK(lumalloc_monitor_stop() == 0 && counted("monitor.dropped") == 0);
}

/* The disk is full for a while. The options have begun the recording, and it ends at exit. */
static void full_for_a_while(const char *file) {
  (void)file;
  struct rlimit limit = {20000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  work((void *)5000);
  CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
}

__attribute__((noinline)) static void *keep(void) {
  void *block = malloc(64);
  __asm__ volatile("" : "+r"(block));
  return block;
}

/* Of 64000 small blocks each 64th stays. */
static void pins(const char *file) {
  static void *kept[1000], *others[64000];
  CHECK(lumalloc_monitor_start(file) == 0);
  for (int n = 0; n < 64000; n++)
    if (n % 64 == 7)
      kept[n / 64] = keep();
    else
      others[n] = malloc(64);
  for (int n = 0; n < 64000; n++)
    free(others[n]);
  CHECK(lumalloc_monitor_stop() == 0);
  CHECK(kept[999] != NULL);
}

/* The system refuses something, which has this error number. */
static void refused(const char *file, int begins, int ends) {
  CHECK(lumalloc_monitor_start(file) == begins);
  work((void *)10);
  CHECK(lumalloc_monitor_stop() == ends && !active());
}

typedef void *plugin_function(size_t);

/* Calls a function of a module that is open for a moment, and returns the function's address. The buffer of the
 * thread becomes full in each round. */
static uintptr_t module(const char *path, const char *name, int rounds) {
  void *opened = dlopen(path, RTLD_NOW);
  CHECK(opened != NULL);
  plugin_function *function = (plugin_function *)dlsym(opened, name);
  CHECK(function != NULL);
  while (rounds-- > 0) {
    for (int i = 0; i < 600; i++) free(function(112));
    /* The mappings are looked at some time after the last look. */
    usleep(50000);
  }
  CHECK(dlclose(opened) == 0);
  return (uintptr_t)function;
}

/* The second module lies where the first one was, and is called from the same places. */
static void modules(const char *file, const char *first, const char *second) {
  CHECK(lumalloc_monitor_start(file) == 0);
  uintptr_t place = module(first, "plugin", 2);
  CHECK(module(second, "second", 100) == place);
  CHECK(lumalloc_monitor_stop() == 0);
}

/* Records until the end of the standard input. */
static void served(const char *file) {
  char byte = 'y';
  CHECK(lumalloc_monitor_start(file) == 0);
  struct node *node = make_node(1, NULL);
  CHECK(write(1, &byte, 1) == 1);
  CHECK(read(0, &byte, 1) == 0);
  drop_node(node);
  CHECK(lumalloc_monitor_stop() == 0);
}

/* Sleeps, or works all the time, until the end of the standard input. */
static void unrecorded(bool works) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  char byte = 'y';
  CHECK(write(1, &byte, 1) == 1);
  while (poll(&input, 1, works ? 0 : -1) == 0)
    work((void *)100);
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "", *file = count > 2 ? words[2] : NULL;
  if (strcmp(what, "record") == 0)
    record(file);
  else if (strcmp(what, "keys") == 0)
    by_keys(file);
  else if (strcmp(what, "forks") == 0)
    forks(file);
  else if (strcmp(what, "full") == 0)
    full(file);
  else if (strcmp(what, "no descriptors") == 0)
    no_descriptors(file);
  else if (strcmp(what, "full for a while") == 0)
    full_for_a_while(file);
  else if (strcmp(what, "modules") == 0 && count > 4)
    modules(file, words[3], words[4]);
  else if (strcmp(what, "served") == 0)
    served(file);
  else if (strcmp(what, "asleep") == 0)
    unrecorded(false);
  else if (strcmp(what, "busy") == 0)
    unrecorded(true);
  else if (strcmp(what, "pins") == 0)
    pins(file);
  else if (strcmp(what, "barred") == 0)
    refused(file, ENOMEM, EAGAIN);
  else if (strcmp(what, "nowhere") == 0) {
    refused("own.events", EINVAL, EAGAIN);
    refused(file, 0, 0);
  } else if (strcmp(what, "unnamed") == 0)
    refused(file, 0, EACCES);
  else if (strcmp(what, "work") == 0)
    work((void *)1000);
  else if (strcmp(what, "killed") == 0) {
    work((void *)1000);
    kill(getpid(), SIGKILL);
  } else if (strcmp(what, "twice") == 0) {
    void *block = malloc(40000);
    free(block);
    free(block);
  } else if (strcmp(what, "foreign") == 0) {
    void *volatile foreign = (void *)0x12345670;
    free(foreign);
  } else
    return 2;
  return 0;
}
