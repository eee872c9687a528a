// operator new and delete, all forms: blocks of this library, aligned, freed by the matching form.
#include <new>
#include <memory>
#include <string>
#include <vector>
#include "api_check.h"

static void check_block(void *block, std::size_t size, std::size_t alignment)
{
  CHECK(block != nullptr && is_aligned(block, alignment));
  CHECK(malloc_usable_size(block) >= size);
  fill(block, size, 1);
  CHECK(is_filled(block, size, 1));
}

static void plain(std::size_t size)
{
  void *block;
  check_block(block = operator new(size), size, size < 16 ? 8 : 16);
  operator delete(block);
  check_block(block = operator new(size), size, 8);
  operator delete(block, size);
  check_block(block = operator new[](size), size, 8);
  operator delete[](block);
  check_block(block = operator new[](size), size, 8);
  operator delete[](block, size);
  check_block(block = operator new(size, std::nothrow), size, 8);
  operator delete(block, std::nothrow);
  check_block(block = operator new[](size, std::nothrow), size, 8);
  operator delete[](block, std::nothrow);
}

static void aligned(std::size_t size, std::size_t alignment)
{
  const std::align_val_t value{alignment};
  void *block;
  check_block(block = operator new(size, value), size, alignment);
  operator delete(block, value);
  check_block(block = operator new(size, value), size, alignment);
  operator delete(block, size, value);
  check_block(block = operator new[](size, value), size, alignment);
  operator delete[](block, value);
  check_block(block = operator new[](size, value), size, alignment);
  operator delete[](block, size, value);
  check_block(block = operator new(size, value, std::nothrow), size, alignment);
  operator delete(block, value, std::nothrow);
  check_block(block = operator new[](size, value, std::nothrow), size, alignment);
  operator delete[](block, value, std::nothrow);
}

static void null_is_allowed()
{
  void *const null = nullptr;
  const std::align_val_t value{64};
  KEEPS_ERRNO(operator delete(null));
  KEEPS_ERRNO(operator delete[](null));
  operator delete(null, 10);
  operator delete[](null, 10);
  operator delete(null, std::nothrow);
  operator delete[](null, std::nothrow);
  operator delete(null, value);
  operator delete[](null, value);
  operator delete(null, 10, value);
  operator delete[](null, 10, value);
  operator delete(null, value, std::nothrow);
  operator delete[](null, value, std::nothrow);
  // A NULL that was put into a cache would come out here.
  for (int at = 0; at < 40; at++) {
    void *block = operator new(10);
    CHECK(block != nullptr);
    operator delete(block, 10);
  }
}

struct alignas(128) Wide { char bytes[300]; };

static void containers()
{
  std::vector<std::string> texts;
  auto text = [](int at) { return std::string(at % 100, 'x') + std::to_string(at); };
  for (int at = 0; at < 20000; at++) texts.push_back(text(at));
  for (int at = 0; at < 20000; at++) CHECK(texts[at] == text(at));
  auto wide = std::make_unique<Wide[]>(10);
  CHECK(is_aligned(wide.get(), 128));
  std::vector<Wide> many(100);
  CHECK(is_aligned(many.data(), 128));
}

int main()
{
  for (std::size_t size = 0; size < (std::size_t(4) << 20); size = size * 2 + 1) {
    plain(size);
    for (std::size_t alignment = 8; alignment <= 65536; alignment *= 4) aligned(size, alignment);
  }
  null_is_allowed();
  containers();
  puts("ok");
  return 0;
}
