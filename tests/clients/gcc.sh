#!/usr/bin/env bash
# gcc compiles a generated C file at three levels; the object code is compared.
. "$(dirname "$0")/common.sh"

awk 'BEGIN {
  print "#include <stdint.h>"
  for (i = 0; i < 400; i++) {
    print "struct s" i " { uint32_t a[" i % 9 + 1 "]; struct s" i " *next; double d; };"
    print "uint64_t f" i "(struct s" i " *s, uint64_t n) {"
    print "  uint64_t sum = " i ";"
    print "  for (; s; s = s->next) {"
    print "    for (unsigned j = 0; j < " i % 9 + 1 "; j++) sum += s->a[j] * (n ^ " i * 7 ");"
    print "    switch (sum % 5) { case 0: sum += 3; break; case 1: sum ^= n; break;"
    print "      case 2: s->d *= 1.5; break; default: sum = sum << 3 | sum >> 61; }"
    print "  }"
    if (i > 0) print "  if (n > 1) sum += f" i - 1 "(0, n / 2);"
    print "  return sum;"
    print "}"
  }
}' > generated.c
echo 'int main(void) { return 0; }' > small.c
bound gcc small.c -o small
for level in 0 1 2; do
  preloaded gcc "-O$level" -g "-fdebug-prefix-map=$PWD=." -c generated.c -o "generated-$level.o"
  echo "-O$level $(sha256sum < "generated-$level.o")"
done
preloaded g++ -O1 -x c++ -c - -o cxx.o <<'CXX'
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
std::map<std::string, std::vector<int>> all;
bool has(const std::string &text) { return std::regex_search(text, std::regex("a(b|c)*d")); }
void sort() { for (auto &entry : all) std::sort(entry.second.begin(), entry.second.end()); }
CXX
echo "c++ $(sha256sum < cxx.o)"
