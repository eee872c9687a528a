// operator new without memory: the new-handler, then std::bad_alloc; NULL from the nothrow forms.
#include <new>
#include <stdexcept>
#include "api_check.h"

static const std::align_val_t WIDE{256};
static int calls;

// Destroyed while the exception passes: shows that frames between throw and catch are unwound.
struct Witness {
  int &destroyed;
  ~Witness() { destroyed++; }
};

template <typename Exception, typename Allocate>
static void throws(Allocate allocate)
{
  int destroyed = 0;
  bool caught = false;
  try {
    Witness witness{destroyed};
    CHECK(allocate() != nullptr);
  } catch (const Exception &) {
    caught = true;
  }
  CHECK(caught && destroyed == 1);
}

template <typename Exception>
static void all_throwing_forms_throw()
{
  const std::size_t huge = opaque(std::size_t(PTRDIFF_MAX));
  throws<Exception>([=] { return operator new(huge); });
  throws<Exception>([=] { return operator new[](huge); });
  throws<Exception>([=] { return operator new(huge, WIDE); });
  throws<Exception>([=] { return operator new[](huge, WIDE); });
}

static void all_nothrow_forms_answer_null()
{
  const std::size_t huge = opaque(std::size_t(PTRDIFF_MAX));
  CHECK(operator new(huge, std::nothrow) == nullptr);
  CHECK(operator new[](huge, std::nothrow) == nullptr);
  CHECK(operator new(huge, WIDE, std::nothrow) == nullptr);
  CHECK(operator new[](huge, WIDE, std::nothrow) == nullptr);
}

static void throw_another() { calls++; throw std::logic_error("from the handler"); }
static void throw_bad_alloc() { calls++; throw std::bad_alloc(); }
static void give_up_the_third_time() { if (++calls == 3) std::set_new_handler(nullptr); }

static void with_handlers()
{
  calls = 0;
  std::set_new_handler(give_up_the_third_time);
  throws<std::bad_alloc>([] { return operator new(opaque(PTRDIFF_MAX)); });
  CHECK(calls == 3);

  calls = 0;
  std::set_new_handler(give_up_the_third_time);
  CHECK(operator new(opaque(PTRDIFF_MAX), std::nothrow) == nullptr);
  CHECK(calls == 3);

  calls = 0;
  std::set_new_handler(throw_bad_alloc);
  all_throwing_forms_throw<std::bad_alloc>();
  all_nothrow_forms_answer_null();
  CHECK(calls == 8);

#ifndef FOREIGN // jemalloc terminates when a handler of a nothrow form throws something else
  calls = 0;
  std::set_new_handler(throw_another);
  all_throwing_forms_throw<std::logic_error>();
  all_nothrow_forms_answer_null();
  CHECK(calls == 8);
#else
  (void)throw_another;
#endif
  std::set_new_handler(nullptr);
}

#ifndef FOREIGN
// No memory would help such a request, so no handler is called, as in libstdc++.
static void a_bad_alignment_is_no_matter_of_a_handler()
{
  for (std::size_t bad : {std::size_t(0), std::size_t(3), std::size_t(24), SIZE_MAX}) {
    const std::align_val_t alignment{opaque(bad)};
    for (std::new_handler handler : {std::new_handler(nullptr), std::new_handler(give_up_the_third_time)}) {
      calls = 0;
      std::set_new_handler(handler);
      throws<std::bad_alloc>([=] { return operator new(100, alignment); });
      throws<std::bad_alloc>([=] { return operator new[](100, alignment); });
      CHECK(operator new(100, alignment, std::nothrow) == nullptr);
      CHECK(operator new[](100, alignment, std::nothrow) == nullptr);
      CHECK(calls == 0);
    }
  }
  std::set_new_handler(nullptr);
}
#endif

int main()
{
  all_throwing_forms_throw<std::bad_alloc>();
  all_nothrow_forms_answer_null();
  with_handlers();
#ifndef FOREIGN
  a_bad_alignment_is_no_matter_of_a_handler();
#endif
  // Everything still works afterwards, deep in nested handlers too.
  try {
    throw std::runtime_error("outer");
  } catch (const std::runtime_error &) {
    all_throwing_forms_throw<std::bad_alloc>();
  }
  delete new int(5);
  puts("ok");
  return 0;
}
