#!/usr/bin/env bash
# Debian's python3 over its own test modules, with every object on malloc (PYTHONMALLOC=malloc).
# Compared are the names and verdicts of the single tests, and the results of the modules.
. "$(dirname "$0")/common.sh"

python=/usr/bin/python3
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
bound "$python" -c 'import json'
preloaded "$python" - "$LIBRARY" <<'PROGRAM'
import os, sys
library = sys.argv[1]
assert not library or os.path.realpath(library) in open("/proc/self/maps").read(), "not mapped"
PROGRAM

# Started in the background of a script, a program inherits SIGINT ignored: the tests of threading
# send it to themselves, so it is put back.
# A test whose verdict depends on the time is given a second chance by --rerun (-w).
status=0
preloaded env --default-signal=INT "$python" \
  -m test -v -w --timeout 240 test_json test_re test_threading test_subprocess \
  > tests.log 2>&1 || status=$?
grep -E '^test[A-Za-z0-9_]* \(.*\).* \.\.\. (ok|skipped|FAIL|ERROR|expected failure)' tests.log |
  sed -E "s/ \.\.\. .*(ok|skipped|FAIL|ERROR|expected failure).*/ \1/" | sort | uniq -c
grep -E '^(Result: |Tests result: |Total test|All [0-9]+ tests OK|[0-9]+ tests? failed)' tests.log |
  sed 's/ then SUCCESS//' || true
[ "$status" -eq 0 ] || grep -E -A25 '^(FAIL|ERROR|Fatal)' tests.log | sed -n 1,150p >&2
exit "$status"
