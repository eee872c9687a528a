/* As many mappings as the kernel lets a process have (vm.max_map_count), so that what needs another
 * one is refused. */
#ifndef STORM_MAP_H
#define STORM_MAP_H

#include "proc_common.h"

enum { STORM_PAGE = 4096 };

/* Pages of which every other one may be made a mapping of its own, by taking access to it away. */
typedef struct {
    char *pages;
    size_t count;
    /* The odd pages below this one are without access. */
    size_t split;
} Filler;

static size_t most_mappings(void) {
    char text[32] = "";
    int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    return strtoul(text, NULL, 10);
}

static Filler new_filler(void) {
    size_t count = most_mappings() + 64;
    return (Filler){private_pages(count * STORM_PAGE), count, 1};
}

static bool split_one(Filler *filler) {
    if (filler->split >= filler->count) return false;
    char *page = filler->pages + filler->split * STORM_PAGE;
    if (mprotect(page, STORM_PAGE, PROT_NONE) != 0) return false;
    filler->split += 2;
    return true;
}

/* Splits until the kernel refuses. */
__attribute__((unused)) static void fill_map(Filler *filler) {
    while (split_one(filler)) continue;
    CHECK(filler->split > 64 && filler->split < filler->count);
}

/* Joins up to `count` pages with their neighbours again: two mappings less for each. */
__attribute__((unused)) static void free_mappings(Filler *filler, size_t count) {
    for (; count > 0 && filler->split > 1; count--) {
        char *page = filler->pages + (filler->split - 2) * STORM_PAGE;
        if (mprotect(page, STORM_PAGE, PROT_READ | PROT_WRITE) != 0) return;
        filler->split -= 2;
    }
}

#endif
