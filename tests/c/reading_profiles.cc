// Types and functions of C++: a vector, a string, a shared pointer, an inlined function, a lambda, a
// namespace, and a thread.
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define PLACE __attribute__((noinline))
#define END asm volatile("")

namespace shop {
struct Widget { char bytes[208]; };
template <class T> struct Shelf {
  PLACE static T *put() { T *made = new T; END; return made; }
};
static inline __attribute__((always_inline)) void *inlined() { return malloc(3000); }
PLACE void *around() { void *made = inlined(); END; return made; }
PLACE std::vector<Widget> *stock(size_t count)
{
  auto *made = new std::vector<Widget>;
  made->reserve(count);
  END;
  return made;
}
PLACE std::string *label() { auto *made = new std::string(500, 'x'); END; return made; }
PLACE std::shared_ptr<Widget> *share()
{
  auto *made = new std::shared_ptr<Widget>(std::make_shared<Widget>());
  END;
  return made;
}
} // namespace shop

static void *volatile kept[64];

int main()
{
  for (int i = 0; i < 10; i++) kept[i] = shop::Shelf<shop::Widget>::put();
  kept[10] = shop::around();
  kept[11] = shop::stock(100);
  kept[12] = shop::label();
  kept[13] = shop::share();
  auto fill = [](size_t size) PLACE { kept[14] = malloc(size); END; };
  fill(7000);
  std::thread([] { kept[15] = malloc(6000); END; }).join();
  return 0;
}
