/* Under a small limit of address space (the test sets RLIMIT_AS before the start): allocation goes
 * on until NULL with ENOMEM, nothing is lost, and after the frees as much is served again, also where
 * smaller blocks need more records than the ones before, and where larger ones need unused memory
 * some of which has gone back to the system. */
#include "proc_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

enum { COUNT = 7 };

struct link {
    struct link *next;
    size_t size;
};

/* Allocates until NULL and chains the blocks; answers their sum. */
static size_t fill(struct link **chain, size_t size) {
    size_t sum = 0;
    for (;;) {
        errno = 0;
        struct link *link = malloc(size);
        if (link == NULL) break;
        memset(link, 0x11, size);
        *link = (struct link){*chain, size};
        *chain = link;
        sum += size;
    }
    CHECK(errno == ENOMEM);
    return sum;
}

/* Frees the first of the `step` blocks at each place of the chain. */
static void drain(struct link **chain, unsigned step) {
    for (unsigned place = 0; *chain != NULL; place++) {
        struct link *link = *chain;
        if (place % step != 0) {
            chain = &link->next;
            continue;
        }
        *chain = link->next;
        CHECK(((unsigned char *)link)[link->size - 1] == 0x11);
        free(link);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    size_t limit = (size_t)atoi(argv[1]) << 10;
    static const size_t sizes[COUNT] = {100, 4096, 512, 5000, 32, 70000, 3 << 20};
    struct link *chain = NULL;
    unsigned char *kept = marked(1000, 7);
    for (unsigned round = 0; round < 2 * COUNT; round++) {
        size_t size = sizes[round % COUNT];
        size_t sum = fill(&chain, size);
        errno = 0;
        CHECK(malloc(limit * 2) == NULL && errno == ENOMEM);
        CHECK(realloc(kept, limit * 2) == NULL && kept[0] == 7 && kept[999] == 7);
        CHECK(calloc(1, limit * 2) == NULL);
        CHECK(aligned_alloc(1 << 20, limit * 2) == NULL);
        /* What is unused lies in pieces, with memory and without in turns. */
        drain(&chain, 2);
        CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
        drain(&chain, 1);
        say("size=%zu served_kib=%zu\n", size, sum >> 10);
        CHECK(sum > limit / 4);
    }
    check_and_free(kept, 1000, 7);
    say("done\n");
    return 0;
}
