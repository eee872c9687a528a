#!/usr/bin/env bash
# bind9's tools, which import mallocx, rallocx, sallocx, sdallocx and mallctl: a generated zone
# checked and dumped, a configuration checked, questions by dig and host to a small server,
# named itself, and libisc's memory contexts over arenas that it makes and destroys.
. "$(dirname "$0")/common.sh"

awk 'BEGIN {
  print "$TTL 3600\n@ IN SOA ns.example.test. root.example.test. (1 3600 600 86400 600)"
  print "@ IN NS ns.example.test.\nns IN A 127.0.0.1"
  for (i = 0; i < 30000; i++) {
    print "host" i " IN A 10." int(i / 65536) "." int(i / 256) % 256 "." i % 256
    if (i % 3 == 0) print "host" i " IN TXT \"text of host " i "\" \"and more\""
    if (i % 5 == 0) print "alias" i " IN CNAME host" i
  }
}' > zone.db
cat > named.conf <<CONF
options { directory "$PWD"; listen-on port 5300 { 127.0.0.1; }; recursion no; };
zone "example.test" { type primary; file "zone.db"; };
CONF
bound named-checkconf named.conf
bound dig -v
preloaded named-checkconf -p named.conf | grep -v directory
preloaded named-checkconf -z named.conf
preloaded named-checkzone example.test zone.db
preloaded named-checkzone -q -D -s full -o dump.db example.test zone.db
sort dump.db | sha256sum
preloaded named-compilezone -q -F raw -o zone.raw example.test zone.db
preloaded named-compilezone -q -f raw -F text -s full -o again.db example.test zone.raw
cmp dump.db again.db && echo "the same by way of the raw form"
preloaded dig -v 2>&1

# A server of one answer: every question for A gets 192.0.2.<length of the first label>.
port=$(free_port)
cat > server.py <<'PROGRAM'
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("127.0.0.1", int(sys.argv[1])))
while True:
    data, peer = sock.recvfrom(4096)
    end = data.index(b"\0", 12) + 5
    answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + bytes([192, 0, 2, data[12]])
    asks_address = data[end - 4:end - 2] == b"\0\1"
    head = data[:2] + b"\x84\x00\x00\x01" + (b"\0\1" if asks_address else b"\0\0") + b"\0\0\0\0"
    sock.sendto(head + data[12:end] + (answer if asks_address else b""), peer)
PROGRAM
/usr/bin/python3 server.py "$port" > server.log 2>&1 &
SERVER=$!
SERVERS+=("$SERVER")
ask() { preloaded dig +noedns +time=5 "@127.0.0.1" -p "$port" "$@"; }
wait_for ask +short first.example.test
for ((i = 0; i < 300; i++)); do
  echo "$(printf "%*s" $((i % 50 + 1)) '' | tr ' ' 'n').example.test"
done > questions.txt
ask +short -f questions.txt | sha256sum
ask +noall +answer one.example.test
preloaded host -p "$port" -t A three.example.test 127.0.0.1 | tail -1

# The server itself, loaded twice, questioned by many at once, and ended in good order.
# Its port is none of those that the system gives to clients.
port=$(perl -MIO::Socket::INET -e 'while (1) {
  my $port = 20000 + int(rand(10000));
  my @address = (LocalAddr => "127.0.0.1", LocalPort => $port);
  my $tcp = IO::Socket::INET->new(@address, Listen => 1) or next;
  my $udp = IO::Socket::INET->new(@address, Proto => "udp") or next;
  print $port; last;
}')
cat > server.conf <<CONF
options {
  directory "$PWD"; listen-on port $port { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; pid-file none; session-keyfile none; dnssec-validation no;
};
controls { };
zone "example.test" { type primary; file "zone.db"; };
CONF
serve named.log named -g -n 2 -c server.conf
wait_for ask +short +tries=1 ns.example.test
mapped "$SERVER"
kill -HUP "$SERVER"
wait_for grep -q "reloading zones succeeded" named.log
for ((i = 0; i < 3000; i += 7)); do echo "host$i.example.test $((i % 3 ? 1 : 0))"; done |
  awk '{ print $1 " " ($2 == 1 ? "A" : "TXT") }' > questions.txt
for client in 1 2 3 4; do
  # By TCP: by UDP, one dig may get what another's port of before was sent.
  ask +tcp +short -f questions.txt > "answers-$client.txt" &
  CLIENTS[client]=$!
done
for client in 1 2 3 4; do wait "${CLIENTS[client]}"; done
sha256sum < answers-1.txt
for client in 2 3 4; do cmp answers-1.txt "answers-$client.txt" && echo "the same answers"; done
ask axfr example.test | grep -c 'IN.*A' || true
kill "$SERVER"
wait "$SERVER" && echo "named ended with $?"

# arenas.create, decay times by name, mallocx, rallocx and sdallocx with flags, arena.<i>.destroy.
gcc -O1 -o isc "$(dirname "$0")/../c/client_isc.c" /usr/lib/*/libisc-9.*.so
LUMALLOC_CONF=stats_print:true,stats_print_opts:gbxelma preloaded ./isc 2> isc-statistics.txt
[ -z "$LIBRARY" ] || grep -q '^Destroyed arenas stats:' isc-statistics.txt ||
  die "libisc has destroyed no arena of $LIBRARY"
