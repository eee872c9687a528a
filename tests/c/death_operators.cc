// Frees a block of argv[2] bytes by the operator argv[1]: another than the one that allocated it, or (argv[1] is
// "mixed") by all that are allowed. With -DREPLACED, -DNOTHROW or -DALIGNED the program has a new[] of its own, which
// calls new, and no delete[] of its own. With -DSIZED it has a delete[] of its own, which calls delete.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#ifdef REPLACED
void *operator new[](std::size_t size) { return ::operator new(size); }
#endif

#ifdef NOTHROW
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept { return ::operator new(size); }
#endif

#ifdef ALIGNED
void *operator new[](std::size_t size, std::align_val_t align) { return ::operator new(size, align); }
#endif

#ifdef SIZED
// The unsized form is left to the library on purpose.
#pragma GCC diagnostic ignored "-Wsized-deallocation"
void operator delete[](void *block, std::size_t) noexcept { ::operator delete(block); }
#endif

static const std::align_val_t WIDE{64};

// Hides from the compiler where a block comes from.
static void *opaque(void *block)
{
  __asm__ volatile("" : "+r"(block) : : "memory");
  return block;
}

static void *single(std::size_t size) { return opaque(operator new(size)); }
static void *array(std::size_t size) { return opaque(operator new[](size)); }

static void mixed(std::size_t size)
{
  operator delete(opaque(malloc(size)));
  operator delete[](opaque(malloc(size)));
  operator delete[](opaque(malloc(size)), size);
  free(single(size));
  free(array(size));
  // What realloc resized in place, or moved, is of no operator.
  for (std::size_t more = 0; more <= size; more += size) {
    operator delete[](opaque(realloc(single(size), size + more)));
    operator delete(opaque(realloc(array(size), size + more)));
  }
  // The next block at an address may be of another operator.
  for (int round = 0; round < 100; round++) {
    operator delete(single(size));
    operator delete[](array(size));
    operator delete(single(size), size);
    operator delete[](array(size), size);
    operator delete(opaque(operator new(size, WIDE)), WIDE);
    operator delete[](opaque(operator new[](size, WIDE)), size, WIDE);
    operator delete[](opaque(operator new[](size, std::nothrow)), std::nothrow);
    free(opaque(malloc(size)));
  }
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  const char *by = argv[1];
  const std::size_t size = strtoul(argv[2], nullptr, 10);
  if (!strcmp(by, "mixed")) mixed(size);
  if (!strcmp(by, "delete")) operator delete(array(size));
  if (!strcmp(by, "sized delete")) operator delete(array(size), size);
  if (!strcmp(by, "aligned delete")) operator delete(opaque(operator new[](size, WIDE)), size, WIDE);
  if (!strcmp(by, "delete[]")) operator delete[](single(size));
  if (!strcmp(by, "sized delete[]")) operator delete[](single(size), size);
  if (!strcmp(by, "nothrow delete[]")) operator delete[](opaque(operator new(size, std::nothrow)), std::nothrow);
  if (!strcmp(by, "replaced")) {
    operator delete[](array(size));
    operator delete[](opaque(operator new[](size, std::nothrow)), std::nothrow);
    operator delete[](opaque(operator new[](size, WIDE)), WIDE);
    operator delete[](array(size), size);
  }
  puts("ok");
  return 0;
}
