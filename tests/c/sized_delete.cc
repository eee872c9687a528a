// Tells sizes that are not those of the blocks, as programs do that delete an object as one of
// another type without a virtual destructor.
#include <cstdio>
#include <cstdlib>
#include <new>

template <class T> __attribute__((noinline)) void *hidden(T *block) {
  asm volatile("" : "+r"(block));
  return block;
}

int main() {
  for (int i = 0; i < 2000; i++) {
    operator delete(hidden(operator new(28)), std::size_t{16});
    operator delete(hidden(operator new(16)), std::size_t{4000});
    operator delete(hidden(operator new(100000)), std::size_t{16});
    operator delete[](hidden(operator new[](64)), std::size_t{640});
    const std::align_val_t align{64};
    operator delete(hidden(operator new(64, align)), std::size_t{640}, align);
    operator delete[](hidden(operator new[](640, align)), std::size_t{64}, align);
    // Blocks of the right sizes still have room for them.
    char *block = static_cast<char *>(std::calloc(1, 4000));
    if (block == nullptr) return 1;
    for (int byte = 0; byte < 4000; byte++)
      if (block[byte] != 0) return 2;
    std::free(block);
  }
  std::puts("ok");
  return 0;
}
