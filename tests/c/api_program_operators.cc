// A program with operators of its own: new and delete, and with -DALIGNED those with an alignment, with -DARRAYS those
// of arrays too. As C++ says, all forms that it does not replace call them, so none may take or give a block past them.
// Its blocks have a head, so they are no blocks of malloc.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>
#include "api_check.h"

// The forms with a size are left to the library on purpose.
#pragma GCC diagnostic ignored "-Wsized-deallocation"

enum Form { NEW, NEW_ARRAY };
struct Head { std::uint64_t mark, form; };
static const std::uint64_t LIVE = 0x6c6976652e2e2e2e;
static const std::size_t TOO_MUCH = PTRDIFF_MAX;

static int live, taken[2];

// Hides from the compiler where a block comes from.
template <typename T> static T *opaque(T *block)
{
  __asm__ volatile("" : "+r"(block) : : "memory");
  return block;
}

static void *take(std::size_t size, std::size_t alignment, Form form)
{
  if (size >= TOO_MUCH) throw std::bad_alloc();
  const std::size_t before = std::max(sizeof(Head), alignment);
  char *memory = static_cast<char *>(std::aligned_alloc(before, (before + size + before - 1) / before * before));
  CHECK(memory != nullptr);
  char *block = memory + before;
  reinterpret_cast<Head *>(block)[-1] = {LIVE + alignment, static_cast<std::uint64_t>(form)};
  live++, taken[form]++;
  return block;
}

static void give(void *block, std::size_t alignment, Form form)
{
  if (block == nullptr) return;
  Head &head = static_cast<Head *>(block)[-1];
  CHECK(head.mark == LIVE + alignment && head.form == form);
  head.mark = 0;
  live--;
  std::free(static_cast<char *>(block) - std::max(sizeof(Head), alignment));
}

void *operator new(std::size_t size) { return take(size, 1, NEW); }
void operator delete(void *block) noexcept { give(block, 1, NEW); }
#ifdef ALIGNED
void *operator new(std::size_t size, std::align_val_t align) { return take(size, std::size_t(align), NEW); }
void operator delete(void *block, std::align_val_t align) noexcept { give(block, std::size_t(align), NEW); }
#endif
#ifdef ARRAYS
void *operator new[](std::size_t size) { return take(size, 1, NEW_ARRAY); }
void operator delete[](void *block) noexcept { give(block, 1, NEW_ARRAY); }
#if defined ALIGNED
void *operator new[](std::size_t size, std::align_val_t align) { return take(size, std::size_t(align), NEW_ARRAY); }
void operator delete[](void *block, std::align_val_t align) noexcept { give(block, std::size_t(align), NEW_ARRAY); }
#endif
static const int ARRAY_FORM = NEW_ARRAY;
#else
static const int ARRAY_FORM = NEW;
#endif

static void pairs(std::size_t size)
{
  operator delete(opaque(operator new(size)), size);
  operator delete(opaque(operator new(size, std::nothrow)));
  operator delete(opaque(operator new(size)), std::nothrow);
  CHECK(live == 0 && taken[NEW] == 3);
  const int before = taken[ARRAY_FORM];
  operator delete[](opaque(operator new[](size)));
  operator delete[](opaque(operator new[](size)), size);
  operator delete[](opaque(operator new[](size, std::nothrow)));
  operator delete[](opaque(operator new[](size)), std::nothrow);
  CHECK(live == 0 && taken[ARRAY_FORM] == before + 4);
  taken[NEW] = taken[NEW_ARRAY] = 0;
}

#ifdef ALIGNED
static void aligned_pairs(std::size_t size)
{
  const std::align_val_t wide{64};
  operator delete(opaque(operator new(size, wide)), size, wide);
  operator delete(opaque(operator new(size, wide, std::nothrow)), wide);
  operator delete(opaque(operator new(size, wide)), wide, std::nothrow);
  CHECK(live == 0 && taken[NEW] == 3);
  const int before = taken[ARRAY_FORM];
  operator delete[](opaque(operator new[](size, wide)), wide);
  operator delete[](opaque(operator new[](size, wide)), size, wide);
  operator delete[](opaque(operator new[](size, wide, std::nothrow)), wide);
  operator delete[](opaque(operator new[](size, wide)), wide, std::nothrow);
  CHECK(live == 0 && taken[ARRAY_FORM] == before + 4);
  taken[NEW] = taken[NEW_ARRAY] = 0;
}
#endif

template <typename Allocate> static bool throws(Allocate allocate)
{
  try {
    opaque(allocate());
  } catch (const std::bad_alloc &) {
    return true;
  }
  return false;
}

// What the program's form throws goes to the caller of a form that throws, and is NULL from others.
static void without_memory()
{
  CHECK(throws([] { return operator new(TOO_MUCH); }));
  CHECK(throws([] { return operator new[](TOO_MUCH); }));
  CHECK(opaque(operator new(TOO_MUCH, std::nothrow)) == nullptr);
  CHECK(opaque(operator new[](TOO_MUCH, std::nothrow)) == nullptr);
#ifdef ALIGNED
  const std::align_val_t wide{64};
  CHECK(throws([=] { return operator new(TOO_MUCH, wide); }));
  CHECK(throws([=] { return operator new[](TOO_MUCH, wide); }));
  CHECK(opaque(operator new(TOO_MUCH, wide, std::nothrow)) == nullptr);
  CHECK(opaque(operator new[](TOO_MUCH, wide, std::nothrow)) == nullptr);
#endif
  CHECK(live == 0);
}

// Expressions and a library: std::stable_sort gets its buffer by the nothrow form.
static void used()
{
  struct Big { char bytes[100]; };
  Big *one = opaque(new Big);
  delete one;
  Big *many = opaque(new Big[7]);
  delete[] many;
  std::vector<int> numbers(1000);
  for (int i = 0; i < 1000; i++) numbers[i] = (i * 7919) % 1000;
  std::stable_sort(numbers.begin(), numbers.end());
  CHECK(numbers[0] == 0 && numbers[999] == 999);
}

static void all_pairs()
{
  for (std::size_t size : {1, 100, 5000, 100000, 3 << 20}) {
    pairs(size);
#ifdef ALIGNED
    aligned_pairs(size);
#endif
  }
}

// Called before the constructors of all libraries, as a constructor of one of them may be. Each form is the first one
// in one of the runs.
static void before_constructors(int, char **arguments, char **)
{
  const char *first = arguments[1];
  if (first == nullptr) return;
  void *block = operator new(10);
  switch (first[0] - '0') {
  case 0: operator delete(opaque(block), 10); break;
  case 1: operator delete(opaque(block), std::nothrow); break;
  case 2: operator delete[](opaque(operator new[](10))); operator delete(block); break;
  case 3: operator delete(opaque(operator new(10, std::nothrow))); operator delete(block); break;
#ifndef ARRAYS
  case 4: operator delete[](opaque(block)); break;
#endif
  default: operator delete(block);
  }
  CHECK(live == 0);
  taken[NEW] = taken[NEW_ARRAY] = 0;
  all_pairs();
}
__attribute__((section(".preinit_array"), used))
static void (*const at_first)(int, char **, char **) = before_constructors;

int main()
{
  all_pairs();
  without_memory();
  used();
  CHECK(live == 0);
  return 0;
}
