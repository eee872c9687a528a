/* Refusals by the kernel itself, which the storm brings upon itself after its first part:
 *
 *   seccomp:NAME[:ADVICE]   a filter has a system call fail with ENOMEM
 *   map                     the process has nearly as many mappings as vm.max_map_count allows; a
 *                           few of them go and come back all the time
 *   keys                    keys of mallctl are written that reach into all arenas and threads
 *   break                   another thread moves the break (preload refuse.c, whose sbrk is atomic)
 */
#ifndef STORM_HARDSHIP_H
#define STORM_HARDSHIP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "storm_checks.h"

/* --- a filter of system calls ----------------------------------------------------------------- */

static long call_number(const char *name) {
    static const struct {
        const char *name;
        long number;
    } CALLS[] = {
            {"madvise", SYS_madvise}, {"mmap", SYS_mmap},         {"munmap", SYS_munmap},
            {"mremap", SYS_mremap},   {"mprotect", SYS_mprotect}, {"membarrier", SYS_membarrier},
            {"mincore", SYS_mincore},
    };
    size_t length = strcspn(name, ":");
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++)
        if (strlen(CALLS[i].name) == length && strncmp(CALLS[i].name, name, length) == 0)
            return CALLS[i].number;
    CHECK(!"a system call that the storm knows");
    return -1;
}

/* All threads get the filter. */
static void filter_calls(const char *name) {
    const char *colon = strchr(name, ':');
    unsigned char any = colon == NULL;
    unsigned advice = colon == NULL ? 0 : (unsigned)atoi(colon + 1);
    struct sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call_number(name), 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice, 0, !any),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    long status = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
    CHECK(status == 0);
}

/* --- a break that others move ----------------------------------------------------------------- */

enum { MOST_PIECES = 4096 };

static struct {
    unsigned char *data;
    size_t size;
} pieces[MOST_PIECES];
static size_t piece_count;

static void check_piece(size_t i) {
    unsigned char mark = (unsigned char)(i * 31 + 7);
    for (size_t at = 0; at < pieces[i].size; at++)
        if (pieces[i].data[at] != mark)
            damage("FOREIGN BYTE: the program's own piece of the data segment %p of %zu, at %zu",
                   (void *)pieces[i].data, pieces[i].size, at);
}

/* Takes a few bytes or pages of the data segment, and checks one of the earlier pieces. */
static void take_piece(uint32_t *state) {
    if (piece_count == MOST_PIECES) return;
    uint32_t random = next_random(state);
    size_t size = random % 4 == 0 ? 1 + random / 4 % 100 : (1 + random / 4 % 5) * STORM_PAGE;
    void *data = sbrk((intptr_t)size);
    if (data == (void *)-1) return;
    add_range(data, size, "sbrk");
    memset(data, (int)(unsigned char)(piece_count * 31 + 7), size);
    pieces[piece_count].data = data;
    pieces[piece_count].size = size;
    piece_count++;
    check_piece(random / 64 % piece_count);
}

/* --- keys ------------------------------------------------------------------------------------- */

__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);

/* One write or action, if the allocator has such keys; it may be refused. */
static void write_a_key(uint32_t random) {
    static const char *const FILLS[] = {"fill.junk_allocated", "fill.junk_freed"};
    bool on = random % 2 == 0;
    size_t oversize = random / 8 % 2 == 0 ? 0 : (size_t)1 << 20;
    ssize_t decay_ms = random / 8 % 3 == 0 ? 0 : (ssize_t)(random / 32 % 500);
    if (mallctl == NULL) return;
    switch (random / 2 % 5) {
        case 0: mallctl(FILLS[random / 8 % 2], NULL, NULL, &on, sizeof on); break;
        case 1: mallctl("arena.4096.purge", NULL, NULL, NULL, 0); break;
        case 2: mallctl("arena.0.dirty_decay_ms", NULL, NULL, &decay_ms, sizeof decay_ms); break;
        case 3: mallctl("arena.0.muzzy_decay_ms", NULL, NULL, &decay_ms, sizeof decay_ms); break;
        default:
            mallctl("arena.0.oversize_threshold", NULL, NULL, &oversize, sizeof oversize);
            break;
    }
}

/* --- one of them ------------------------------------------------------------------------------ */

static Filler storm_filler;

/* Begins the hardship `name`; none if it is empty. */
static void begin_hardship(const char *name) {
    if (strncmp(name, "seccomp:", 8) == 0) filter_calls(name + 8);
    if (strcmp(name, "map") == 0) {
        storm_filler = new_filler();
        fill_map(&storm_filler);
    }
}

/* A step of the hardship, which main takes again and again while the threads work. */
static void continue_hardship(const char *name, uint32_t *state) {
    if (strcmp(name, "break") == 0) take_piece(state);
    if (strcmp(name, "keys") == 0) write_a_key(next_random(state));
    if (strcmp(name, "map") == 0) {
        free_mappings(&storm_filler, next_random(state) % 16);
        sched_yield();
        fill_map(&storm_filler);
    }
}

static void end_hardship(const char *name) {
    for (size_t i = 0; i < piece_count; i++) check_piece(i);
    if (strcmp(name, "map") == 0) free_mappings(&storm_filler, storm_filler.count);
}

#endif
