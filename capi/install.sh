#!/bin/sh
# Installs lumalloc for C programs: the library, its headers, manual pages and pkg-config file, and
# the exporter's library and the command `lumalloc`, with mprof(1) and mtreplay(1), where they were built.
#
#   capi/install.sh [--prefix DIR] [--libdir DIR] [--destdir DIR] [--from DIR] [--as-jemalloc]
#
#   --prefix DIR     where it is to be used: /usr/local
#   --libdir DIR     where libraries go: PREFIX/lib
#   --destdir DIR    put before every path, for packages; not written into any file
#   --from DIR       takes the built files from DIR; else they are built by cargo, or taken from
#                    target/release where there is no cargo, as for root beside a user's rustup
#   --as-jemalloc    also under jemalloc's names: include/jemalloc/jemalloc.h, jemalloc.pc,
#                    libjemalloc.so.2, libjemalloc.so and libjemalloc.a, so that programs built for
#                    jemalloc, or being built for it, get lumalloc. Another one's files of these
#                    names are never replaced: then nothing is installed.
#
# liblumalloc_mp.a is liblumalloc.a with mprof:true: programs that are linked with it write mprof.data.
#
# Where the loader finds libraries by ldconfig's cache (/etc/ld.so.conf), root's run renews the cache,
# but not with --destdir. Else the last line says what is left to do. Needs cc and binutils for
# liblumalloc_mp.a, and cc for --as-jemalloc (libjemalloc.so.2 is a filter on liblumalloc.so: a link
# would not be in ldconfig's cache, which goes by SONAMEs).
set -eu
umask 022 # What is installed is for everyone to read, also where root's umask is 077.
PROGRAM=$0
fail() {
  echo "$PROGRAM: $*" >&2
  exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local libdir='' destdir='' from='' as_jemalloc=no
while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --libdir | --destdir | --from)
      [ $# -ge 2 ] || fail "$1 needs a directory"
      case $1 in
        --prefix) prefix=$2 ;;
        --libdir) libdir=$2 ;;
        --destdir) destdir=$2 ;;
        --from) from=$2 ;;
      esac
      shift 2
      ;;
    --as-jemalloc)
      as_jemalloc=yes
      shift
      ;;
    --help)
      sed -n '2,/^set /{/^#/s/^# \{0,1\}//p;}' "$0"
      exit 0
      ;;
    *) fail "unknown option $1; --help lists them" ;;
  esac
done
libdir=${libdir:-$prefix/lib}
case $prefix$libdir in
  *[!A-Za-z0-9_./+@:,~-]*) fail "a path with such characters cannot stand in a .pc file: $prefix $libdir" ;;
esac
case $prefix in /*) ;; *) fail "--prefix must be an absolute path: $prefix" ;; esac
case $libdir in /*) ;; *) fail "--libdir must be an absolute path: $libdir" ;; esac

if [ -z "$from" ]; then
  from=${CARGO_TARGET_DIR:-$here/../target}/release
  if command -v cargo >/dev/null; then
    (cd "$here/.." && cargo build --release)
  elif [ ! -f "$from/liblumalloc.so" ]; then
    fail "cargo is not found: name built files with --from DIR, which has what comes of cargo build --release"
  fi
fi
for file in liblumalloc.so liblumalloc.a; do
  [ -f "$from/$file" ] || fail "$from/$file: no such file; build it with cargo build --release"
done

lib=$destdir$libdir include=$destdir$prefix/include man=$destdir$prefix/share/man/man3
version=$(sed -n 's/^#define LUMALLOC_VERSION "\(.*\)"$/\1/p' "$here/include/lumalloc.h")

# A file of jemalloc's names that is not of our making stays, and so does everything else.
is_ours() {
  [ ! -e "$1" ] && [ ! -L "$1" ] || grep -q -a -i lumalloc "$1" 2>/dev/null
}
if [ "$as_jemalloc" = yes ]; then
  command -v cc >/dev/null || fail "--as-jemalloc needs cc to make libjemalloc.so.2"
  for file in "$lib/libjemalloc.so.2" "$lib/libjemalloc.so" "$lib/libjemalloc.a" \
    "$lib/pkgconfig/jemalloc.pc" "$include/jemalloc/jemalloc.h"; do
    is_ours "$file" || fail "$file is another one's: nothing is installed"
  done
fi

for tool in cc ld objcopy ar; do
  command -v $tool >/dev/null || fail "$tool is needed to make liblumalloc_mp.a: install gcc and binutils"
done

# The archive of mprof(1): all of liblumalloc.a in one object, in which the variable with options that
# hold whatever others say is set.
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
echo 'const char *malloc_conf_2_conf_harder = "mprof:true";' | cc -x c -c -o "$made/conf.o" -
ld -r -o "$made/all.o" "$made/conf.o" --whole-archive "$from/liblumalloc.a"
# Bitcode of the compiler, which older tools cannot read.
objcopy -R .llvmbc -R .llvmcmd "$made/all.o" "$made/lumalloc_mp.o"
ar rcs "$made/liblumalloc_mp.a" "$made/lumalloc_mp.o"

install -d "$lib/pkgconfig" "$include" "$man"
install -m 755 "$from/liblumalloc.so" "$lib/liblumalloc.so"
install -m 644 "$from/liblumalloc.a" "$lib/liblumalloc.a"
install -m 644 "$made/liblumalloc_mp.a" "$lib/liblumalloc_mp.a"
if [ -f "$from/liblumalloc_exporter.so" ]; then
  install -m 755 "$from/liblumalloc_exporter.so" "$lib/liblumalloc_exporter.so"
fi
install -m 644 "$here/include/lumalloc.h" "$include/lumalloc.h"
install -m 644 "$here/include/vmalloc.h" "$include/vmalloc.h"
install -m 644 "$here/man/vmalloc.3" "$man/vmalloc.3"
# The list of names is generated, and comes in where the page says so.
sed '/^\.\\" NAMES: /r '"$here/../namespace/docs/names.troff" "$here/man/lumalloc.3" > "$man/lumalloc.3"
chmod 644 "$man/lumalloc.3"
if [ -f "$from/lumalloc" ]; then
  install -d "$destdir$prefix/bin"
  install -m 755 "$from/lumalloc" "$destdir$prefix/bin/lumalloc"
  install -d "$destdir$prefix/share/man/man1"
  install -m 644 "$here/man/mprof.1" "$destdir$prefix/share/man/man1/mprof.1"
  install -m 644 "$here/man/mtreplay.1" "$destdir$prefix/share/man/man1/mtreplay.1"
fi

# pkg_config NAME VERSION LIBRARY
pkg_config() {
  cat > "$lib/pkgconfig/$1.pc" <<PC
prefix=$prefix
libdir=$libdir
includedir=\${prefix}/include

Name: $1
Description: lumalloc, a memory allocator that one can see into
Version: $2
Cflags: -I\${includedir}
Libs: -L\${libdir} -l$3
Libs.private: -ldl -lm -lpthread
PC
}
pkg_config lumalloc "$version" lumalloc

if [ "$as_jemalloc" = yes ]; then
  install -d "$include/jemalloc"
  install -m 644 "$here/include/jemalloc/jemalloc.h" "$include/jemalloc/jemalloc.h"
  pkg_config jemalloc 5.3.0_0 jemalloc
  ln -sf liblumalloc.so "$lib/libjemalloc.so"
  ln -sf liblumalloc.a "$lib/libjemalloc.a"
  # The loader puts the library that a filter names in the filter's own place.
  cc -shared -nostdlib -x c /dev/null -o "$lib/libjemalloc.so.2" -Wl,-soname,libjemalloc.so.2 \
    -Wl,--filter=liblumalloc.so '-Wl,-rpath,$ORIGIN'
fi
echo "installed in $destdir$prefix; libraries in $lib"

# Programs find the library by a cache of those in certain directories. A package renews it when it is
# installed.
[ -z "$destdir" ] || exit 0
ldconfig=$(PATH=$PATH:/usr/sbin:/sbin command -v ldconfig || :)
# Prints a word if the cache covers the directory.
covers_libdir() {
  "$ldconfig" -v -N -X 2>/dev/null | sed -n 's,^\(/[^:]*\):.*,\1,p' | while read -r directory; do
    if [ "$directory" -ef "$libdir" ]; then echo yes; fi
  done
}
if [ -z "$ldconfig" ] || [ -z "$(covers_libdir)" ]; then
  echo "the loader does not look there by itself: link with -Wl,-rpath,$libdir, or set LD_LIBRARY_PATH"
elif [ "$(id -u)" = 0 ]; then
  "$ldconfig"
else
  echo "now run ldconfig as root, or programs do not find liblumalloc.so"
fi
