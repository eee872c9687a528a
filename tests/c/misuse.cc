// Commits the misuses of misuse.c on what `new` and `delete` give and take.
#include <new>

static void *allocate(std::size_t bytes) { return ::operator new(bytes); }
static void deallocate(void *block) { ::operator delete(block); }

#include "misuse_kinds.h"

static const struct kind KINDS[] = {COMMON_KINDS, KINDS_OF_NOTHING};

int main(int argc, char **argv) { return commit(KINDS, sizeof KINDS / sizeof *KINDS, argc, argv); }
