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
cli config set jemalloc-bg-thread no
[ -z "$LIBRARY" ] || ! grep -qx lumalloc_bg "/proc/$SERVER/task/"*/comm || die "off, it still runs"
cli config set jemalloc-bg-thread yes
[ -z "$LIBRARY" ] || grep -qx lumalloc_bg "/proc/$SERVER/task/"*/comm || die "on, it does not run"

cli -n 1 flushdb
[ "$(cli debug digest)" = "$before" ] || die "the benchmark changed database 0"
cli debug reload
[ "$(cli debug digest)" = "$before" ] || die "the digest changed by the reload"
cli flushall
cli dbsize
cli shutdown nosave
wait "$SERVER"
echo "redis ended with $?"
