/* What the storm checks: no two live blocks overlap, and what was written into a block stays there
 * until it is freed. A failure says how to repeat the run, and ends the process with status 1. */
#ifndef STORM_CHECKS_H
#define STORM_CHECKS_H

#include "storm_map.h"

/* How to repeat the run; filled in by main. */
static char storm_repeat[512];

__attribute__((format(printf, 1, 2), noreturn)) static void damage(const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text / 2, format, list);
    va_end(list);
    length += snprintf(text + length, sizeof text - (size_t)length, "\nrepeat: %s\n", storm_repeat);
    if (write(2, text, (size_t)length) < 0) _exit(2);
    _exit(1);
}

/* --- live ranges ------------------------------------------------------------------------------ */

enum { MOST_RANGES = 16384 };

typedef struct {
    uintptr_t begin, end;
} Range;

/* Sorted by address. Each is there from the return of the call that made the block to just before
 * the call that frees it, so that two that overlap are a block handed out twice. */
static struct {
    pthread_mutex_t lock;
    size_t count;
    Range all[MOST_RANGES];
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The place of the first range that ends behind `begin`. */
static size_t range_place(uintptr_t begin) {
    size_t low = 0, high = live.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (live.all[middle].end <= begin) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void add_range(const void *block, size_t size, const char *call) {
    Range new = {(uintptr_t)block, (uintptr_t)block + (size == 0 ? 1 : size)};
    pthread_mutex_lock(&live.lock);
    size_t at = range_place(new.begin);
    if (at < live.count && live.all[at].begin < new.end) {
        Range old = live.all[at];
        damage("OVERLAP: %s returned %p to %p, in which %p to %p is in use", call,
               (void *)new.begin, (void *)new.end, (void *)old.begin, (void *)old.end);
    }
    CHECK(live.count < MOST_RANGES);
    memmove(&live.all[at + 1], &live.all[at], (live.count - at) * sizeof(Range));
    live.all[at] = new;
    live.count++;
    pthread_mutex_unlock(&live.lock);
}

static void remove_range(const void *block) {
    pthread_mutex_lock(&live.lock);
    size_t at = range_place((uintptr_t)block);
    CHECK(at < live.count && live.all[at].begin == (uintptr_t)block);
    live.count--;
    memmove(&live.all[at], &live.all[at + 1], (live.count - at) * sizeof(Range));
    pthread_mutex_unlock(&live.lock);
}

/* --- tags ------------------------------------------------------------------------------------- */

/* A block, and what is written into it: a word at its beginning and every `step` bytes, and its
 * last word; a block without room for a word has one byte everywhere. */
typedef struct {
    unsigned char *data;
    size_t size;
    size_t step;
    uint64_t tag;
} Block;

static uint64_t word_of(uint64_t tag, size_t at) { return tag ^ (at * 0x9E3779B97F4A7C15u); }

static void write_word(const Block *block, size_t at) {
    uint64_t word = word_of(block->tag, at);
    memcpy(block->data + at, &word, sizeof word);
}

static void check_word(const Block *block, size_t at, const char *when) {
    uint64_t found, expected = word_of(block->tag, at);
    memcpy(&found, block->data + at, sizeof found);
    if (found == expected) return;
    damage("FOREIGN TAG %s: block %p of %zu bytes, at %zu: %016llx, not %016llx", when,
           (void *)block->data, block->size, at, (unsigned long long)found,
           (unsigned long long)expected);
}

/* The last word of a block is written apart from those before it. */
static bool has_word_at(const Block *block, size_t at) { return at + 16 <= block->size; }

static void write_tags(const Block *block) {
    if (block->size < 8) {
        memset(block->data, (int)(block->tag & 0xff), block->size);
        return;
    }
    for (size_t at = 0; has_word_at(block, at); at += block->step) write_word(block, at);
    write_word(block, block->size - 8);
}

/* Checks the tags among the first `kept` bytes. */
static void check_tags(const Block *block, size_t kept, const char *when) {
    if (block->size < 8) {
        for (size_t at = 0; at < kept && at < block->size; at++)
            if (block->data[at] != (block->tag & 0xff))
                damage("FOREIGN TAG %s: block %p of %zu bytes, at %zu: %02x, not %02x", when,
                       (void *)block->data, block->size, at, block->data[at],
                       (unsigned)(block->tag & 0xff));
        return;
    }
    for (size_t at = 0; has_word_at(block, at) && at + 8 <= kept; at += block->step)
        check_word(block, at, when);
    if (kept >= block->size) check_word(block, block->size - 8, when);
}

/* --- promises --------------------------------------------------------------------------------- */

/* Bytes `from` to `to` read zero: all of them near both ends, and some of each page between. */
__attribute__((unused)) static void check_zero(const unsigned char *block, size_t from, size_t to,
                                               const char *call) {
    for (size_t at = from; at < to; at++) {
        if (block[at] != 0) damage("NOT ZERO: %s, block %p, at %zu", call, (void *)block, at);
        bool is_near_an_end = at - from < STORM_PAGE || to - at <= STORM_PAGE;
        if (!is_near_an_end) at += at % STORM_PAGE < 64 ? 0 : 500;
    }
}

static void check_place(const void *block, size_t size, size_t align, size_t usable,
                        const char *call) {
    if (size >= 16 && align < 16) align = 16;
    if ((uintptr_t)block % align != 0) damage("MISALIGNED: %s: %p, %zu", call, block, align);
    if (usable < size) damage("TOO SHORT: %s: %p, %zu bytes of %zu", call, block, usable, size);
}

#endif
