// Allocates by each form of `operator new` at a place of its own, and writes a profile to the file
// that the argument names. Linked with the library.
#include "api_check.h"
#include <lumalloc.h>
#include <new>

static void *volatile kept[100];
static int count;

// Not inlined, and not left by a jump.
#define PLACE(name, call) \
  extern "C" __attribute__((noinline)) void name() { kept[count++] = call; asm volatile(""); }

PLACE(single, operator new(100))
PLACE(array, operator new[](100))
PLACE(aligned_single, operator new(100, std::align_val_t(64)))
PLACE(aligned_array, operator new[](100, std::align_val_t(64)))
PLACE(nothrow_single, operator new(100, std::nothrow))
PLACE(nothrow_array, operator new[](100, std::nothrow))
PLACE(nothrow_aligned_single, operator new(100, std::align_val_t(64), std::nothrow))
PLACE(nothrow_aligned_array, operator new[](100, std::align_val_t(64), std::nothrow))

int main(int argc, char **argv)
{
  CHECK(argc == 2);
  single(); array(); aligned_single(); aligned_array();
  nothrow_single(); nothrow_array(); nothrow_aligned_single(); nothrow_aligned_array();
  CHECK(mallctl("prof.dump", NULL, NULL, &argv[1], sizeof argv[1]) == 0);
  return 0;
}
