/* Blocks in a process that has as many mappings as vm.max_map_count allows, but for a few:
 *
 *   full_map BLOCKS BYTES LEFT
 *
 * asks for so many blocks and checks that no two coincide, that they keep what is written into them,
 * and that they can be freed and asked for again. Prints how many there were. */
#include <malloc.h>

#include "storm_checks.h"

enum { MOST_BLOCKS = 64, ROUNDS = 3 };

static Block blocks[MOST_BLOCKS];

static bool take(Block *block, size_t size, uint64_t tag) {
    void *data = malloc(size);
    if (data == NULL) return false;
    size_t usable = malloc_usable_size(data);
    check_place(data, size, 1, usable, "malloc");
    add_range(data, usable, "malloc");
    *block = (Block){data, size, STORM_PAGE, tag};
    write_tags(block);
    return true;
}

static void give(Block *block) {
    check_tags(block, block->size, "before free");
    remove_range(block->data);
    free(block->data);
}

static int round_of(int count, size_t size, uint64_t tag) {
    int got = 0;
    for (int i = 0; i < count; i++)
        if (take(&blocks[got], size, tag + (uint64_t)i)) got++;
    for (int i = 0; i < got; i++) give(&blocks[i]);
    return got;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    int count = atoi(argv[1]);
    size_t size = strtoul(argv[2], NULL, 10), left = strtoul(argv[3], NULL, 10);
    CHECK(count > 0 && count <= MOST_BLOCKS);
    snprintf(storm_repeat, sizeof storm_repeat, "full_map %d %zu %zu", count, size, left);
    Filler filler = new_filler();
    fill_map(&filler);
    free_mappings(&filler, left);
    int got = 0;
    for (int i = 0; i < ROUNDS; i++) got += round_of(count, size, (uint64_t)i << 32);
    free_mappings(&filler, filler.count);
    CHECK(round_of(count, size, (uint64_t)ROUNDS << 32) == count);
    say("blocks=%d of %d\n", got, ROUNDS * count);
    return 0;
}
