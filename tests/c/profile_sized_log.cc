// Makes ROUNDS objects, one after the other, each in `make`, and deletes it with its size in
// `destroy`. The next one is made 2 ms later. With an argument it keeps a log of the samples that
// are freed, and writes it to the file of that name.
#include <cstddef>
#include <unistd.h>

extern "C" int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

enum { ROUNDS = 50 };

struct Object {
    char bytes[3000];
};

__attribute__((noinline)) static Object *make() {
    Object *object = new Object;
    __asm__ volatile("" ::"r"(object) : "memory");
    return object;
}

__attribute__((noinline)) static void destroy(Object *object) {
    ::operator delete(object, sizeof *object);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    if (argc > 1 && mallctl("prof.log_start", nullptr, nullptr, &argv[1], sizeof argv[1]) != 0)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        destroy(make());
        usleep(2000);
    }
    return argc > 1 ? mallctl("prof.log_stop", nullptr, nullptr, nullptr, 0) : 0;
}
