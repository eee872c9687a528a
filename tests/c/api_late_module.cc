// A module in C++, which brings the C++ runtime into a C program.
#include <cstdlib>
#include <new>

static int calls;

static void handler()
{
  calls++;
  throw 1;
}

static const size_t MUCH = ~size_t{0} >> 2;

// Returns how many of four requests without memory ended as C++ says.
extern "C" int module()
{
  int right = 0;
  try {
    delete[] static_cast<char *>(::operator new[](MUCH));
  } catch (const std::bad_alloc &) {
    right++;
  }
  try {
    ::operator delete(::operator new(MUCH, std::align_val_t{64}), std::align_val_t{64});
  } catch (const std::bad_alloc &) {
    right++;
  }
  std::set_new_handler(handler);
  right += ::operator new(MUCH, std::nothrow) == nullptr && calls == 1;
  try {
    ::operator delete(::operator new(MUCH));
  } catch (int) {
    right += calls == 2;
  }
  return right;
}
