/* The last samples, and the log of freed ones: profile_log RECENT LOG, names of files to write. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lumalloc.h"

/* The library is preloaded. */
#pragma weak mallctl

#define CHECK(fact)                                                    \
  do {                                                                 \
    if (!(fact)) {                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);       \
      _exit(1);                                                        \
    }                                                                  \
  } while (0)

struct target {
  void (*write)(void *, const char *);
  void *opaque;
};

static const char dump_key[] = "experimental.prof_recent.alloc_dump";
static const char max_key[] = "experimental.prof_recent.alloc_max";

static int set_most(ssize_t most) {
  return mallctl(max_key, NULL, NULL, &most, sizeof most);
}

static int set_name(const char *name) {
  return mallctl("thread.prof.name", NULL, NULL, &name, sizeof name);
}

/* The callback may allocate. */
static void put(void *file, const char *text) {
  free(malloc(10));
  fputs(text, file);
}

__attribute__((noinline)) static void *make(size_t size) {
  void *block = malloc(size);
  __asm__ volatile("");
  return block;
}

__attribute__((noinline)) static void *drop(void *block) {
  free(block);
  __asm__ volatile("");
  return NULL;
}

static void *drop_elsewhere(void *block) {
  CHECK(set_name("other") == 0);
  return drop(block);
}

static void recent(const char *name) {
  FILE *file = fopen(name, "w");
  struct target target = {put, file};
  struct target none = {NULL, NULL};
  ssize_t most = 7;
  size_t length = sizeof most;
  CHECK(mallctl(max_key, &most, &length, NULL, 0) == 0 && most == 0);
  CHECK(set_most(-2) == EINVAL && set_most(3) == 0);
  CHECK(mallctl(dump_key, NULL, NULL, &none, sizeof none) == EINVAL);
  CHECK(mallctl(dump_key, NULL, NULL, &target, 3) == EINVAL);
  CHECK(mallctl(dump_key, &target, &length, NULL, 0) == EPERM);
  CHECK(set_name("main one") == 0);
  void *blocks[5];
  setvbuf(file, NULL, _IONBF, 0);
  for (int n = 0; n < 5; n++)
    blocks[n] = make(1000 + n);
  drop(blocks[3]);
  CHECK(mallctl(dump_key, NULL, NULL, &target, sizeof target) == 0);
  fclose(file);
  CHECK(set_most(0) == 0);
  for (int n = 0; n < 5; n++)
    if (n != 3)
      drop(blocks[n]);
}

static void log_of_frees(const char *name) {
  const char *nowhere = "/nowhere/at/all.json";
  CHECK(mallctl("prof.log_stop", NULL, NULL, NULL, 0) == EAGAIN);
  CHECK(mallctl("prof.log_start", NULL, NULL, &nowhere, sizeof nowhere) == 0);
  CHECK(mallctl("prof.log_stop", NULL, NULL, NULL, 0) == EFAULT);
  void *before = make(2000);
  CHECK(mallctl("prof.log_start", NULL, NULL, &name, sizeof name) == 0);
  CHECK(mallctl("prof.log_start", NULL, NULL, &name, sizeof name) == EBUSY);
  // The log is this process's. A child neither ends it nor writes it when it exits.
  pid_t child = fork();
  if (child == 0) {
    CHECK(mallctl("prof.log_stop", NULL, NULL, NULL, 0) == EAGAIN);
    exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(access(name, F_OK) != 0);
  void *kept = make(3000), *other = make(4000), *same = make(2000);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, drop_elsewhere, other) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  drop(before);
  drop(same);
  CHECK(mallctl("prof.log_stop", NULL, NULL, NULL, 0) == 0);
  drop(kept);
}

int main(int count, char **words) {
  if (count < 3) {
    struct target target = {put, stdout};
    CHECK(set_most(3) == ENOENT && mallctl("prof.log_start", NULL, NULL, NULL, 0) == ENOENT);
    CHECK(mallctl(dump_key, NULL, NULL, &target, sizeof target) == ENOENT);
    return 0;
  }
  recent(words[1]);
  log_of_frees(words[2]);
  return 0;
}
