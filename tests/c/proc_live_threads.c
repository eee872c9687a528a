/* argv[1] threads live at once, each uses 20 size classes lightly: 3 blocks of each, kept.
 * Prints what is resident while all of them live. */
#include "proc_common.h"

enum { CLASSES = 20, EACH = 3 };

static const size_t sizes[CLASSES] = {8,   16,  32,  48,  64,  80,  96,  112,  128,  160,
                                      192, 224, 256, 320, 384, 448, 512, 640, 768, 1024};
static pthread_barrier_t full, over;

static void *work(void *argument) {
    unsigned char mark = (unsigned char)(uintptr_t)argument;
    unsigned char *blocks[CLASSES][EACH];
    for (int i = 0; i < CLASSES; i++) {
        for (int j = 0; j < EACH; j++) blocks[i][j] = marked(sizes[i], mark);
    }
    pthread_barrier_wait(&full);
    pthread_barrier_wait(&over);
    for (int i = 0; i < CLASSES; i++) {
        for (int j = 0; j < EACH; j++) check_and_free(blocks[i][j], sizes[i], mark);
    }
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    unsigned count = (unsigned)atoi(argv[1]);
    pthread_t *threads = private_pages(count * sizeof *threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
    pthread_barrier_init(&full, NULL, count + 1);
    pthread_barrier_init(&over, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        CHECK(pthread_create(&threads[i], &attributes, work, (void *)(uintptr_t)i) == 0);
    }
    pthread_barrier_wait(&full);
    size_t resident = rss_kib();
    pthread_barrier_wait(&over);
    for (unsigned i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    say("threads=%u rss_kib=%zu\n", count, resident);
    return 0;
}
