#!/usr/bin/env bash
# nginx under wrk: static files with gzip and server-side includes, with reloads in between.
. "$(dirname "$0")/common.sh"

port=$(free_port)
mkdir -p site logs temp
for size in 0 1 100 5000 70000 1000000; do
  perl -e 'my $n = shift; print substr("line of text $n\n" x ($n / 10 + 1), 0, $n)' "$size" \
    > "site/$size.txt"
done
for i in 1 2 3 4 5; do echo "<!--# include virtual=\"/$((10 ** i / 10)).txt\" --> part $i"; done \
  > site/parts.html
cat > nginx.conf <<CONF
$([ "$(id -u)" -ne 0 ] || echo "user root;")
daemon off;
worker_processes 2;
pid $PWD/nginx.pid;
error_log $PWD/logs/error.log warn;
events { worker_connections 512; }
http {
  access_log $PWD/logs/access.log;
  client_body_temp_path $PWD/temp/body;
  proxy_temp_path $PWD/temp/proxy;
  fastcgi_temp_path $PWD/temp/fastcgi;
  uwsgi_temp_path $PWD/temp/uwsgi;
  scgi_temp_path $PWD/temp/scgi;
  default_type text/plain;
  types { text/html html; }
  server {
    listen 127.0.0.1:$port;
    root $PWD/site;
    gzip on;
    gzip_types text/plain;
    ssi on;
    keepalive_requests 100000000;
  }
}
CONF
bound nginx -t -q -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/logs/error.log"
serve nginx.log nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/logs/error.log"
# One request by hand; the header that tells the time is dropped.
get() {
  perl -MIO::Socket::INET -e 'my ($port, $path, $coding) = @ARGV;
    my $s = IO::Socket::INET->new("127.0.0.1:$port") or die "no connection";
    print $s "GET $path HTTP/1.0\r\nAccept-Encoding: $coding\r\n\r\n";
    local $/; my $answer = <$s>; $answer =~ s/^(Date|Last-Modified|ETag): .*\r\n//mg;
    print $answer' "$port" "$@"
}
wait_for get /0.txt identity
for worker in $(pgrep -P "$SERVER"); do mapped "$worker"; done

fetch_all() {
  local path coding
  for path in /0.txt /1.txt /100.txt /5000.txt /70000.txt /1000000.txt /parts.html /missing.txt; do
    for coding in identity gzip; do
      echo "$path $coding $(get "$path" "$coding" | sha256sum)"
    done
  done
}
fetch_all
cat > paths.lua <<'LUA'
local paths = { "/100.txt", "/5000.txt", "/parts.html", "/70000.txt", "/1.txt" }
local count = 0
request = function()
  count = count + 1
  local headers = { ["Accept-Encoding"] = count % 2 == 0 and "gzip" or nil }
  return wrk.format("GET", paths[count % #paths + 1], headers)
end
LUA
for round in 1 2; do
  wrk -t 2 -c 60 -d 3s -s paths.lua "http://127.0.0.1:$port/" > wrk.txt
  grep -q 'requests in' wrk.txt || die "wrk: $(cat wrk.txt)"
  ! grep -E 'Non-2xx|Socket errors' wrk.txt >&2 || die "wrk saw errors"
  old=$(pgrep -P "$SERVER")
  kill -HUP "$SERVER"
  for worker in $old; do wait_for test ! -e "/proc/$worker"; done
  echo "round $round, then a reload"
done
fetch_all
for worker in $(pgrep -P "$SERVER"); do mapped "$worker"; done
kill -QUIT "$SERVER"
wait "$SERVER"
echo "nginx ended with $?"
! grep -E 'alert|emerg|crit|exited on signal' logs/error.log || die "nginx reports errors (above)"
