# The common part of the client scripts; each begins with `. "$(dirname "$0")/common.sh"`.
#
# A script runs one real program in the current (empty) directory, under the library named by
# LUMALLOC_PRELOAD, or on the system's allocator if that is empty. What it prints on standard
# output must be the same in both cases; clients.rs compares. It fails when the preloading was not
# in effect. Servers listen on 127.0.0.1 only and end with the script.
set -euo pipefail
export LC_ALL=C TZ=UTC PATH="$PATH:/usr/sbin:/sbin"
LIBRARY=${LUMALLOC_PRELOAD:-}

die() {
  echo "$0: $*" >&2
  exit 1
}

# Ends every server that `serve` started, also when the script fails.
SERVERS=()
stop_servers() {
  local pid
  for pid in ${SERVERS[@]+"${SERVERS[@]}"}; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  SERVERS=()
}
trap stop_servers EXIT

# Runs a command preloaded.
preloaded() {
  if [ -n "$LIBRARY" ]; then
    env LD_PRELOAD="$LIBRARY" "$@"
  else
    "$@"
  fi
}

# Runs a command preloaded and demands that every binding of malloc and its family, in the command
# and whatever it starts, went to the library. Use it once per client, on a short run.
bound() {
  if [ -z "$LIBRARY" ]; then
    "$@" >/dev/null
    return
  fi
  rm -f bindings.*
  env LD_DEBUG=bindings LD_DEBUG_OUTPUT="$PWD/bindings" LD_PRELOAD="$LIBRARY" "$@" >/dev/null
  sed -n "s/.* to \(.*\) \[0\]: normal symbol .\(malloc\|calloc\|realloc\|free\)'.*/\1 \2/p" \
    bindings.* | sort -u > bound-to
  grep -q "^$LIBRARY " bound-to || die "$1 is not bound to $LIBRARY"
  # An executable that takes malloc's address holds a stub of the name, which leads to the library;
  # one that defines the name keeps it.
  local file name
  while read -r file name; do
    if [ "$file" != "$LIBRARY" ] && nm -D --defined-only "$file" | grep -q -E " $name(@|$)"; then
      die "$1 uses the $name of $file"
    fi
  done < bound-to
  rm -f bound-to bindings.*
}

# Demands that a live process has mapped the library.
mapped() {
  [ -z "$LIBRARY" ] || grep -q -F "$(realpath "$LIBRARY")" "/proc/$1/maps" ||
    die "process $1 has not mapped $LIBRARY"
}

free_port() {
  perl -MIO::Socket::INET -e \
    'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'
}

# serve LOG COMMAND...: starts a server in the background, preloaded; its process is $SERVER.
serve() {
  local log=$1
  shift
  if [ -n "$LIBRARY" ]; then
    LD_PRELOAD="$LIBRARY" "$@" > "$log" 2>&1 &
  else
    "$@" > "$log" 2>&1 &
  fi
  SERVER=$!
  SERVERS+=("$SERVER")
}

# wait_for COMMAND...: until it succeeds, for at most 30 seconds.
wait_for() {
  local i
  for ((i = 0; i < 300; i++)); do
    if "$@" >/dev/null 2>&1; then
      return
    fi
    kill -0 "$SERVER" 2>/dev/null || die "the server ended: $(cat ./*.log)"
    sleep 0.1
  done
  die "no success in time: $*"
}
