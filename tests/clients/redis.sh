#!/usr/bin/env bash
# redis-server: a fixed data set, its digest, a snapshot by a forked child, redis-benchmark beside
# it, and the commands that reach into the allocator. Debian's redis calls mallctl by name.
. "$(dirname "$0")/common.sh"

bound redis-server --version
port=$(free_port)
serve redis.log redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$PWD" \
  --enable-debug-command yes --daemonize no
cli() { redis-cli -h 127.0.0.1 -p "$port" "$@"; }
wait_for cli ping
mapped "$SERVER"

# 60000 commands with values of many sizes, overwritten and deleted in between.
awk 'BEGIN {
  for (i = 0; i < 30000; i++) {
    value = sprintf("%*s", 1 + (i * 7919) % 3000, "v" i)
    gsub(/ /, "x", value)
    print "SET key:" i % 12000 " " value
    if (i % 3 == 0) print "HSET hash:" i % 500 " field:" i " value:" i * 31
    if (i % 4 == 0) print "RPUSH list:" i % 300 " item:" i * 17
    if (i % 5 == 0) print "ZADD set:" i % 200 " " i * 13 % 1000 " member:" i
    if (i % 6 == 0) print "DEL key:" (i * 5) % 12000
    if (i % 7 == 0) print "APPEND key:" i % 12000 " " value
  }
}' > commands.txt
cli --pipe < commands.txt | tail -1
cli dbsize
before=$(cli debug digest)
echo "digest $before"

# redis-benchmark on another database, while a child of fork writes a snapshot.
cli bgsave >/dev/null
for pipeline in 1 32; do
  redis-benchmark -h 127.0.0.1 -p "$port" --dbnum 1 -n 30000 -c 30 -r 10000 -d 400 -q \
    -P "$pipeline" -t set,get,incr,lpush,lpop,sadd,hset,spop,zadd,lrange_100,mset \
    > "benchmark-$pipeline.txt" 2>&1 || die "redis-benchmark: $(cat "benchmark-$pipeline.txt")"
  tr '\r' '\n' < "benchmark-$pipeline.txt" | grep -c 'requests per second, p50='
  ! grep -i error "benchmark-$pipeline.txt" || die "redis-benchmark reports errors"
done
wait_for grep -q 'rdb_bgsave_in_progress:0' <(cli info persistence)
cli info persistence | grep -o 'rdb_last_bgsave_status:[a-z]*'

cli memory purge
cli info memory | grep -o '^mem_allocator:[a-z]*'
cli info memory | grep -c -E '^allocator_(allocated|active|resident):[1-9]'
cli memory malloc-stats > malloc-stats.txt
[ -s malloc-stats.txt ] || die "MEMORY MALLOC-STATS is empty"
cli memory doctor > doctor.txt
[ -s doctor.txt ] || die "MEMORY DOCTOR is empty"
cli memory stats | grep -c -E 'allocator.(allocated|active|resident)'
cli debug mallctl-str version > version.txt
[ -s version.txt ] || die "DEBUG MALLCTL-STR version is empty"

# DEBUG MALLCTL reads, or writes and answers the old value; it tries 8, 4, 2 and 1 bytes. Debian's
# redis has jemalloc 5.3.0 without our library, so both must answer the same. (Their slabs end at
# 14 KiB and ours at 32 KiB: the number of bins, and where large classes begin, are amounts.)
answers() { echo "$1 ${2:-}: $(cli debug mallctl "$@")"; }
for name in arenas.page arenas.quantum arenas.bin.0.size arenas.bin.35.size opt.dirty_decay_ms opt.abort_conf opt.zero \
  opt.stats_interval config.stats config.debug background_thread thread.tcache.flush \
  arena.0.initialized arena.4097.purge arena.0.nonsense arenas.bin.50.size stats stats.nonsense; do
  answers "$name"
done
# Those that name an amount: only that it is one.
for name in epoch opt.narenas arenas.narenas arenas.nbins arenas.lextent.0.size \
  arenas.lextent.10.size arenas.bin.0.nregs stats.allocated stats.resident \
  stats.arenas.0.pactive stats.arenas.4096.small.allocated stats.arenas.0.bins.0.curregs \
  stats.arenas.0.nthreads stats.background_thread.num_threads; do
  answers "$name" | sed -E 's/: [0-9]+$/: a number/'
done
answers epoch 1 | sed -E 's/: [0-9]+$/: a number/'
answers arenas.dirty_decay_ms 5000
answers arenas.dirty_decay_ms
answers arena.0.dirty_decay_ms 4000
answers arena.0.dirty_decay_ms 3000
answers max_background_threads 2 | sed -E 's/: [0-9]+$/: a number/'
answers max_background_threads
answers arenas.page 8192
answers stats.allocated 1
for name in opt.dss arena.0.dss opt.junk opt.percpu_arena opt.thp opt.zero_realloc; do
  echo "$name: $(cli debug mallctl-str "$name")"
done
echo "arena.0.dss: $(cli debug mallctl-str arena.0.dss disabled)"
echo "arena.0.dss: $(cli debug mallctl-str arena.0.dss)"
# The thread names itself when it begins, and is there for a moment after it has stopped its work.
background_runs() { grep -qx lumalloc_bg "/proc/$SERVER/task/"*/comm; }
background_is_gone() { ! background_runs; }
cli config set jemalloc-bg-thread no
[ -z "$LIBRARY" ] || wait_for background_is_gone
cli config set jemalloc-bg-thread yes
[ -z "$LIBRARY" ] || wait_for background_runs

cli -n 1 flushdb
[ "$(cli debug digest)" = "$before" ] || die "the benchmark changed database 0"
cli debug reload
[ "$(cli debug digest)" = "$before" ] || die "the digest changed by the reload"
cli flushall
cli dbsize
cli shutdown nosave
wait "$SERVER"
echo "redis ended with $?"
