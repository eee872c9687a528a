// Writes the first word of objects with the name of their class, then what is mapped. A word without
// a class has the name `-`.
#include "library.h"
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <typeinfo>

namespace shop {

struct Base {
    virtual ~Base() {}
    int number = 3;
};
struct Other {
    virtual ~Other() {}
    virtual int other() { return 4; }
};
struct Abstract : Base {
    virtual int number_of() = 0;
};
struct Concrete : Abstract {
    int number_of() override { return 5; }
};
struct Widget : Base {};
struct Both : Widget, Other {};
struct Diamond : virtual Base, virtual Other {};
struct Plain {
    long numbers[3] = {1, 2, 3};
};
template <class T, int N>
struct Shelf : Base {
    T* things[N] = {};
};

} // namespace shop

namespace {
struct Local : shop::Base {};
} // namespace

#ifdef __GXX_RTTI
static const void* const type = &typeid(shop::Widget);
#else
static const void* const type = "no type";
#endif
static const void* const pointers[] = {nullptr, type, nullptr, "text"};
static const void* const fake_type[] = {pointers, "4Fake"};
static const char* expected = nullptr;

static void show(const char* name, unsigned long word) {
    printf("%s %lx\n", name, word);
}

// As the allocator sees a block that is deleted.
__attribute__((noinline)) static void look(void* block) {
    if (expected != nullptr) {
        show(expected, *static_cast<unsigned long*>(block));
    }
    free(block);
}
void operator delete(void* block) noexcept {
    look(block);
}
void operator delete(void* block, std::size_t) noexcept {
    look(block);
}

// Has the form of a v-table, but what stands for the `type_info` is not one.
static const void* const fake[] = {nullptr, fake_type, reinterpret_cast<const void*>(&look)};

// Deletes an object by its base class.
__attribute__((noipa)) static void destroy(const char* name, shop::Base* object) {
    expected = name;
    delete object;
    expected = nullptr;
}

template <class T>
static void live(const char* name, T* object) {
    show(name, *reinterpret_cast<unsigned long*>(object));
}

int main() {
    live("shop::Base", new shop::Base);
    live("shop::Widget", new shop::Widget);
    live("shop::Both", new shop::Both);
    live("shop::Diamond", new shop::Diamond);
    live("shop::Shelf<shop::Plain, 7>", new shop::Shelf<shop::Plain, 7>);
    live("(anonymous namespace)::Local", new Local);
    live("shop::Concrete", new shop::Concrete);
    live("lib::Remote", new lib::Remote);
    live("lib::Visible", new lib::Visible);
    live("lib::(anonymous namespace)::Hidden", lib::make_remote());
    auto shared = std::make_shared<shop::Plain>();
    // The block begins two words before the object.
    show("shop::Plain", reinterpret_cast<unsigned long*>(shared.get())[-2]);
    destroy("shop::Widget", new shop::Widget);
    destroy("shop::Both", new shop::Both);

    show("-", reinterpret_cast<unsigned long>(type));
    // Behind a pointer to the `type_info` of the base.
    show("-", reinterpret_cast<unsigned long>(type) + 24);
    show("-", reinterpret_cast<unsigned long>(&fake[2]));
    show("-", reinterpret_cast<unsigned long>(&pointers[2]));
    show("-", reinterpret_cast<unsigned long>(&pointers[1]));
    show("-", reinterpret_cast<unsigned long>(pointers[3]));
    show("-", reinterpret_cast<unsigned long>(&main));
    show("-", reinterpret_cast<unsigned long>(shared.get()));
    show("-", *reinterpret_cast<unsigned long*>(new shop::Widget) + 8);
    show("-", *reinterpret_cast<unsigned long*>(new shop::Widget) + 1);

    FILE* maps = fopen("/proc/self/maps", "r");
    for (int byte = fgetc(maps); byte != EOF; byte = fgetc(maps)) {
        putchar(byte);
    }
    return 0;
}
