/* Hooks of automatic arenas that have not been made. Run with narenas:9: nobody makes the last. */
#include "api_check.h"

static extent_hooks_t *defaults;
static extent_hooks_t mine;
static int asked;

static void *counted(extent_hooks_t *hooks, void *addr, size_t size, size_t alignment, bool *zero,
                     bool *commit, unsigned index)
{
  (void)hooks;
  asked++;
  return defaults->alloc(defaults, addr, size, alignment, zero, commit, index);
}

static bool is_made(const char *key)
{
  bool made = false;
  size_t length = sizeof made;
  CHECK(mallctl(key, &made, &length, NULL, 0) == 0);
  return made;
}

int main(void)
{
  extent_hooks_t *before = NULL, *new_hooks = &mine;
  size_t length = sizeof before;
  void *block;
  CHECK(mallctl("arena.0.extent_hooks", &defaults, &length, NULL, 0) == 0);
  mine = *defaults;
  mine.alloc = counted;
  /* A read answers the default ones, and makes nothing. */
  CHECK(!is_made("arena.8.initialized"));
  CHECK(mallctl("arena.8.extent_hooks", &before, &length, NULL, 0) == 0 && before == defaults);
  CHECK(!is_made("arena.8.initialized"));
  /* A read and write at once makes the arena. */
  before = NULL;
  CHECK(mallctl("arena.8.extent_hooks", &before, &length, &new_hooks, sizeof new_hooks) == 0);
  CHECK(before == defaults && is_made("arena.8.initialized"));
  CHECK(mallctl("arena.8.extent_hooks", &before, &length, NULL, 0) == 0 && before == &mine);
  block = mallocx(1 << 20, MALLOCX_ARENA(8));
  CHECK(block != NULL && asked > 0);
  dallocx(block, MALLOCX_ARENA(8));
  /* There is no arena 9: it is the old way to say "all". */
  CHECK(mallctl("arena.9.extent_hooks", &before, &length, NULL, 0) == EFAULT);
  CHECK(mallctl("arena.9.extent_hooks", NULL, NULL, &new_hooks, sizeof new_hooks) == EFAULT);
  puts("ok");
  return 0;
}
