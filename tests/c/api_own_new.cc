// A program with its own operator new alone, or with -DARRAYS new[] alone, or with -DALIGNED the one with an alignment.
// It requests another size of malloc than it is called with, which the library's delete must not compare.
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>
#include "api_check.h"

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

static int taken;

static void *take(std::size_t size, std::size_t alignment)
{
  void *block = nullptr;
  taken++;
  if (posix_memalign(&block, alignment, size + 40) != 0) throw std::bad_alloc();
  return block;
}

#if defined(ALIGNED)
void *operator new(std::size_t size, std::align_val_t alignment) { return take(size, (std::size_t)alignment); }
#elif defined(ARRAYS)
void *operator new[](std::size_t size) { return take(size, 64); }
#else
void *operator new(std::size_t size) { return take(size, 64); }
#endif

struct alignas(64) Wide {
  char bytes[64];
  ~Wide() { __asm__ volatile("" : : : "memory"); }
};

struct Small {
  char byte;
  ~Small() { __asm__ volatile("" : : : "memory"); }
};

int main()
{
  for (std::size_t count = 1; count < 3000; count = count * 5 / 4 + 1) {
    std::vector<int> numbers(count);
    std::vector<Wide> wide(count);
    __asm__ volatile("" : : "r"(numbers.data()), "r"(wide.data()) : "memory");
    delete new long;
    delete[] new Small[count];
    delete new Wide;
    delete[] new Wide[count];
  }
  CHECK(taken > 20);
  return 0;
}
