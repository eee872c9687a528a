// A shared library with classes.
#include "library.h"

namespace lib {

Remote::~Remote() {}
Visible::~Visible() {}
void Visible::key() {}

namespace {
struct Hidden final : Remote {};
} // namespace

Remote* make_remote() {
    return new Hidden;
}

} // namespace lib
