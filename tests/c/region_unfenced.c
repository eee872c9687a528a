/* A system that refuses membarrier, as some sandboxes do: regions are found by a process with one thread. With
 * several threads nothing is known of regions of one thread, and errno says so. */
#include "region_check.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void refuse_fences(void)
{
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Counts the segments of a region. */
struct seen {
  Vmalloc_t *vm;
  int segments;
};

static int see(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)
{
  struct seen *seen = (struct seen *)handle;
  seen->segments += vm == seen->vm;
  (void)segment, (void)size, (void)disc;
  return 0;
}

static int fds[2];

static void *wait_for_the_end(void *argument)
{
  char byte;
  CHECK(read(fds[0], &byte, 1) == 0);
  return argument;
}

int main(void)
{
  Vmalloc_t *alone = vmopen(Vmdcheap, Vmbest, 0), *shared = vmopen(Vmdcheap, Vmbest, VM_SHARE);
  struct seen seen_alone = {alone, 0}, seen_shared = {shared, 0};
  void *block = vmalloc(alone, 100), *other = vmalloc(shared, 100);
  pthread_t thread;
  CHECK(block != NULL && other != NULL && pipe(fds) == 0);
  refuse_fences();
  CHECK(vmregion(block) == alone && vmregion(other) == shared);
  CHECK(vmwalk(NULL, see, &seen_alone) == 0 && seen_alone.segments == 1);

  CHECK(pthread_create(&thread, NULL, wait_for_the_end, NULL) == 0);
  errno = 0;
  CHECK(vmregion(block) == NULL && errno == ENOSYS);
  errno = 0;
  seen_alone.segments = 0;
  CHECK(vmwalk(NULL, see, &seen_alone) == 0 && seen_alone.segments == 0 && errno == ENOSYS);
  CHECK(vmregion(other) == shared && vmwalk(NULL, see, &seen_shared) == 0 && seen_shared.segments == 1);
  /* Of its own regions a thread knows all. */
  CHECK(vmwalk(alone, see, &seen_alone) == 0 && seen_alone.segments == 1);

  CHECK(close(fds[1]) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(vmregion(block) == alone);
  CHECK(vmclose(alone) == 0 && vmclose(shared) == 0);
  puts("ok");
  return 0;
}
