/* Functions of the C library that allocate for their callers: reading_profiles.rs. */
#include <stdio.h>
#include <string.h>

static char *kept[300];

__attribute__((noinline)) static void parse_names(void) {
    for (int n = 0; n < 100; n++) kept[n] = strdup("a name of twenty-four or so letters");
}

__attribute__((noinline)) static void parse_places(void) {
    for (int n = 100; n < 150; n++) kept[n] = strdup("a place");
}

__attribute__((noinline)) static void make_paths(void) {
    for (int n = 150; n < 180; n++) {
        if (asprintf(&kept[n], "%0100d", n) < 0) return;
    }
}

int main(void) {
    parse_names();
    parse_places();
    make_paths();
    return 0;
}
