/* Vmdcsystem leaves mappings and addresses to the rest of the program. */
#include "region_check.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* So many regions, of which so many have windows. */
enum { MANY = 6000, WINDOWS = 4096 };

/* What the process has mapped, in bytes. */
static size_t mapped(void)
{
  FILE *file = fopen("/proc/self/statm", "r");
  size_t pages;
  CHECK(file != NULL && fscanf(file, "%zu", &pages) == 1 && fclose(file) == 0);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* How many mappings it has. */
static int mappings(void)
{
  FILE *file = fopen("/proc/self/maps", "r");
  int byte, lines = 0;
  CHECK(file != NULL);
  while ((byte = getc(file)) != EOF) lines += byte == '\n';
  CHECK(fclose(file) == 0);
  return lines;
}

/* The first regions have windows, to grow in: two mappings for each. The others have one each, which the
   system joins where they lie side by side, and the program may need some itself. */
static void many_regions_have_few_mappings(void)
{
  static Vmalloc_t *regions[MANY];
  int i, round;
  for (round = 0; round < 2; round++) {
    int before = mappings();
    for (i = 0; i < MANY; i++) CHECK((regions[i] = vmopen(Vmdcsystem, Vmbest, 0)) != NULL);
    CHECK(mappings() - before < 2 * WINDOWS + (MANY - WINDOWS) + 100);
    for (i = 0; i < MANY; i += 50) CHECK(vmalloc(regions[i], 100000) != NULL && vmdbcheck(regions[i]) == 0);
    for (i = MANY; i-- > 0;) CHECK(vmclose(regions[i]) == 0);
  }
}

/* There regions have no windows. */
static void a_limit_of_addresses_is_left_to_others(void)
{
  pid_t child = fork();
  int status, i;
  if (child == 0) {
    size_t before = mapped();
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = before + ((size_t)1 << 30);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (i = 0; i < 10; i++) {
      Vmalloc_t *vm = vmopen(Vmdcsystem, Vmbest, 0);
      CHECK(vm != NULL && vmalloc(vm, 100) != NULL);
    }
    CHECK(mapped() - before < (size_t)200 << 20);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
  a_limit_of_addresses_is_left_to_others();
  many_regions_have_few_mappings();
  puts("ok");
  return 0;
}
