/* A program sets a limit of address space after it has used and freed much (with the argument "prlimit" by that call).
 * The addresses of what is unused then go back at the next purge, and serve a mapping of the program. */
#include "proc_common.h"

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

int main(int count, char **unused) {
    (void)unused;
    void **last = NULL;
    for (int i = 0; i < 200000; i++) {
        void **next = malloc(2000);
        CHECK(next != NULL);
        *next = last;
        last = next;
    }
    while (last != NULL) {
        void **next = *last;
        free(last);
        last = next;
    }
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages;
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
    struct rlimit limit = {(pages << 12) + (50 << 20), RLIM_INFINITY}, before;
    if (count > 1) {
        CHECK(prlimit(0, RLIMIT_AS, &limit, &before) == 0 && before.rlim_cur == RLIM_INFINITY);
    } else {
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    struct rlimit wrong = {2, 1};
    CHECK(setrlimit(RLIMIT_AS, &wrong) == -1 && errno == EINVAL);
    CHECK(prlimit(0, RLIMIT_AS, &wrong, NULL) == -1 && errno == EINVAL);
    CHECK(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
    CHECK(mmap(NULL, 200 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    say("done\n");
    return 0;
}
