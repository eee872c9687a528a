#!/usr/bin/env bash
# git on a generated repository: import, log, diff, blame, repack with threads, fsck, clone.
. "$(dirname "$0")/common.sh"

export GIT_CONFIG_NOSYSTEM=1 HOME="$PWD" GIT_PAGER=cat
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid
export GIT_COMMITTER_DATE='1700000000 +0000'
bound git version
preloaded git init -q -b main repo
cd repo
awk 'BEGIN {
  for (c = 1; c <= 400; c++) {
    print "commit refs/heads/main"
    print "committer a <a@example.invalid> " 1600000000 + c * 60 " +0000"
    message = "commit " c "\n"
    print "data " length(message) "\n" message
    for (k = 0; k < 4; k++) {
      f = (c * 7 + k * 13) % 60
      text = ""
      for (l = 0; l < 40 + f; l++) text = text "line " l " of " f " at " (l * c % 17 == 0 ? c : f) "\n"
      print "M 100644 inline dir" f % 6 "/file" f
      print "data " length(text) "\n" text
    }
  }
}' | preloaded git fast-import --quiet
preloaded git reset -q --hard main
preloaded git rev-parse HEAD
preloaded git log --stat | sha256sum
preloaded git log -p --all -M -C | sha256sum
preloaded git blame dir1/file7 | sha256sum
preloaded git grep -c 'line 1[0-9] of' | sha256sum
preloaded git -c pack.threads=4 gc --aggressive --prune=now --quiet
preloaded git fsck --full --strict 2>&1
preloaded git count-objects -v | grep -E '^(count|in-pack|packs):'
preloaded git clone -q --no-local . ../clone
preloaded git -C ../clone rev-parse HEAD 'HEAD^{tree}'
preloaded git -C ../clone archive HEAD | sha256sum
