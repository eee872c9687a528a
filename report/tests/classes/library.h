// Classes of a shared library.
#pragma once

namespace lib {

// Its v-table is in the library.
struct Remote {
    virtual ~Remote();
    int number = 1;
};

// Its constructor is in each program that uses it.
struct Visible {
    virtual ~Visible();
    virtual void key();
    int number = 2;
};

Remote* make_remote();

} // namespace lib
