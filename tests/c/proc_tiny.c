/* The smallest program that uses the heap. Prints the peak of its resident memory. */
#include "proc_common.h"

int main(void) {
    char *volatile text = strdup("a tiny program");
    CHECK(text != NULL);
    free(text);
    say("peak_kib=%zu\n", peak_rss_kib());
    return 0;
}
