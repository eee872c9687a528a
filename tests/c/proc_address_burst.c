/* Under a limit of address space (the test sets RLIMIT_AS or RLIMIT_DATA before the start; with an argument, the
 * program itself sets RLIMIT_AS to so many MiB): small blocks take all of it, and are freed. Then the addresses are
 * there for others: a thread, a mapping of the program, and a large block. */
#include <sys/resource.h>

#include "proc_common.h"

static void *nothing(void *argument) { return argument; }

int main(int count, char **arguments) {
    void **last = NULL;
    if (count > 1) {
        rlim_t bytes = strtoul(arguments[1], NULL, 10) << 20;
        CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0);
    }
    for (void **next; (next = malloc(2000)) != NULL; last = next) *next = last;
    while (last != NULL) {
        void **next = *last;
        free(last);
        last = next;
    }
    pthread_t thread;
    printf("thread=%d\n", pthread_create(&thread, NULL, nothing, NULL));
    void *mapped = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("mapping=%d\n", mapped == MAP_FAILED ? errno : 0);
    printf("block=%d\n", malloc(150 << 20) == NULL ? errno : 0);
    return 0;
}
