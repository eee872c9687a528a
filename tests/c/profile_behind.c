// Counts how often the allocator asks for the module of an address, while this program allocates through
// libraries. The unwind tables of one that was loaded with the program are looked at once, wherever it
// stands in the list of modules. One that was opened may be unloaded, and another one be at its addresses.
//
//   profile_behind OTHER   OTHER is profile_plugin.c too
//
// With -DEARLY="…" this is a library that calls profile_plugin.c, and has opened EARLY before the allocator
// is initialized.
#include <dlfcn.h>
#include <stdlib.h>

typedef void *plugin_function(size_t);

#ifdef EARLY

plugin_function plugin, *const behind = plugin, *early;

__attribute__((constructor)) static void open_early(void)
{
  void *module = dlopen(EARLY, RTLD_NOW);
  if (module == NULL) abort();
  early = (plugin_function *)dlsym(module, "plugin");
}

void *through(size_t size)
{
  void *block = plugin(size);
  __asm__ volatile("");
  return block;
}

#else

#include "api_check.h"
#include <link.h>
#include <sys/auxv.h>

enum { TIMES = 1000, FEW = 100 };

extern plugin_function through, *const behind, *early;

static size_t asked;

// Takes the place of the C library's for the allocator.
int _dl_find_object(void *address, struct dl_find_object *result)
{
  static int (*real)(void *, struct dl_find_object *);
  if (real == NULL) real = (int (*)(void *, struct dl_find_object *))dlsym(RTLD_NEXT, "_dl_find_object");
  asked++;
  return real(address, result);
}

// The places of the loader and of the library that `through` calls among all modules.
static size_t place, of_loader, of_behind;

static int see(struct dl_phdr_info *info, size_t size, void *nothing)
{
  (void)size, (void)nothing;
  place++;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
    if (part->p_type != PT_LOAD) continue;
    if (getauxval(AT_BASE) >= begin && getauxval(AT_BASE) < end) of_loader = place;
    if ((uintptr_t)behind >= begin && (uintptr_t)behind < end) of_behind = place;
  }
  return 0;
}

// How often the allocator asked while this many blocks were allocated.
static size_t asked_for(plugin_function *allocate)
{
  free(allocate(112));
  size_t before = asked;
  for (int i = 0; i < TIMES; i++) free(allocate(112));
  return asked - before;
}

int main(int argc, char **argv)
{
  CHECK(argc == 2);
  dl_iterate_phdr(see, NULL);
  // The system does not tell where a loader is that was started itself.
  CHECK(getauxval(AT_BASE) == 0 || of_loader != 0);
  CHECK(of_loader < of_behind);
  CHECK(asked_for(through) < FEW);
  CHECK(asked_for(early) >= TIMES);
  void *module = dlopen(argv[1], RTLD_NOW);
  CHECK(module != NULL);
  plugin_function *opened = (plugin_function *)dlsym(module, "plugin");
  CHECK(opened != NULL);
  CHECK(asked_for(opened) >= TIMES);
  CHECK(asked_for(through) < FEW);
  return 0;
}

#endif
