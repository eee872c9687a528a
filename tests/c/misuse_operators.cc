// Commits the misuse argv[1] of the operators of C++ on argv[2] elements: one operator's block given to another. See
// misuse.c.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include <unistd.h>

static size_t size;

static void unnoticed() {
    // A stream would allocate its buffer here, and the block that was freed may be it.
    static const char said[] = "unnoticed\n";
    if (write(1, said, sizeof said - 1) < 0) _exit(9);
}

template <typename T>
static T *opaque(T *pointer) {
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

struct Long {
    size_t words[9];
};

static void delete_as_longer() { delete opaque(reinterpret_cast<Long *>(opaque(new char))); }
static void delete_of_chars() { delete opaque(new char[size]); }
static void delete_of_strings() { delete opaque(new std::string[size]); }
static void delete_array_of_a_char() { delete[] opaque(new char); }
static void delete_array_of_a_string() { delete[] opaque(new std::string); }
static void delete_of_an_array() { ::operator delete(opaque(new char[size])); }
static void delete_array_of_a_block() { ::operator delete[](opaque(::operator new(size))); }
static void sized_delete_of_twice() { ::operator delete(opaque(::operator new(size)), size * 2); }
static void sized_delete_of_half() { ::operator delete(opaque(::operator new(size)), size / 2); }

struct Kind {
    const char *name;
    bool is_sized;
    void (*misuse)();
};

static const Kind KINDS[] = {
    {"delete_as_longer", false, delete_as_longer},
    {"delete_of_chars", true, delete_of_chars},
    {"delete_of_strings", true, delete_of_strings},
    {"delete_array_of_a_char", false, delete_array_of_a_char},
    {"delete_array_of_a_string", false, delete_array_of_a_string},
    {"delete_of_an_array", true, delete_of_an_array},
    {"delete_array_of_a_block", true, delete_array_of_a_block},
    {"sized_delete_of_twice", true, sized_delete_of_twice},
    {"sized_delete_of_half", true, sized_delete_of_half},
};

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    size = argc > 2 ? static_cast<size_t>(atol(argv[2])) : 16;
    for (const Kind &kind : KINDS) {
        if (strcmp(argv[1], "list") == 0) {
            printf("%s%s\n", kind.name, kind.is_sized ? " sized" : "");
        } else if (strcmp(argv[1], kind.name) == 0) {
            kind.misuse();
            unnoticed();
            return 0;
        }
    }
    return strcmp(argv[1], "list") == 0 ? 0 : 2;
}
