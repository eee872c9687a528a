//! Programs of Debian print the same with the library as without it.
//!
//! `clients.rs` has longer ones, for this machine. These run on every machine under test.

use lumalloc_tests::Run;
use lumalloc_tests::machine::system_program;

/// Options that each change what the library does with the same requests.
const OPTIONS: [&str; 5] = [
    "",
    "dirty_decay_ms:0,thp:always",
    "background_thread:true,dirty_decay_ms:100,junk:true",
    "hardened:true,guarded_sample:200",
    "prof:true,lg_prof_sample:8",
];

/// Runs a program without the library, and with it under each of the options. Checks the output,
/// and that the library was loaded.
fn says(program: &str, args: &[&str], expected: &str) {
    let program = system_program(program);
    let plain = Run::plain(&program).args(args).stdout();
    assert_eq!(plain, expected, "{} without the library", program.display());
    for conf in OPTIONS {
        let conf = format!("{conf},stats_print:true,stats_print_opts:gmdablxe");
        let run = Run::preloaded(&program).args(args).conf(conf.trim_start_matches(','));
        let output = run.output();
        let [text, errors] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{} {conf}: {errors}", program.display());
        assert_eq!(text, expected, "{} {conf}", program.display());
        assert_eq!(errors.matches("--- End ").count(), 1, "{} {conf}", program.display());
    }
}

const PYTHON: &str = r#"
import collections, hashlib, json, re, threading, zlib

def work(seed, results):
    state, rows = seed, []
    for row in range(3000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        rows.append({"row": row, "text": "x%d" % state * (state >> 60), "list": list(range(row % 17))})
    text = json.dumps(rows)
    assert json.loads(text) == rows
    packed = zlib.compress(text.encode())
    assert zlib.decompress(packed).decode() == text
    words = collections.Counter(re.findall(r"x\d", text))
    results[seed] = hashlib.sha256(repr(sorted(words.items())).encode() + text.encode()).hexdigest()

results = {}
threads = [threading.Thread(target=work, args=(seed, results)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(hashlib.sha256(repr(sorted(results.items())).encode()).hexdigest()[:16])
"#;

#[test]
fn python() {
    says("python3.11", &["-IS", "-c", PYTHON], "0b76fbe89eb4ac06\n");
}

const SQL: &str = "
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
  INSERT INTO t SELECT i, hex(i * 2654435761 % 4294967296) || '-' || i, i * 7919 % 10007 FROM n;
CREATE INDEX by_name ON t (name);
CREATE INDEX by_size ON t (size, name);
UPDATE t SET name = upper(name) || substr(name, 1, size % 40) WHERE size % 3 = 0;
DELETE FROM t WHERE size % 5 = 0;
SELECT count(*), sum(length(name)), max(name) FROM t;
SELECT count(*) FROM t a JOIN t b ON a.size = b.size AND a.id < b.id;
SELECT group_concat(name) = (SELECT group_concat(name) FROM (SELECT name FROM t ORDER BY id))
  FROM (SELECT name FROM t ORDER BY id);
PRAGMA integrity_check;
";

#[test]
fn sqlite() {
    let expected = "15999|490256|393939343537373637-9495\n7994\n1\nok\n";
    says("sqlite3", &[":memory:", SQL], expected);
}

const PERL: &str = r#"
use strict; use warnings;
my (%count, @words, $state);
$state = 1;
for my $i (1 .. 60000) {
    $state = ($state * 69069 + 1) % 4294967296;
    push @words, sprintf("%x", $state) x ($state % 5);
    $count{substr($words[-1], 0, 3)}++;
}
my $text = join " ", sort @words;
my $long = () = $text =~ /\b[0-9a-f]{20,}\b/g;
(my $other = $text) =~ s/([a-f])(\d)/$2$1/g;
my @split = split / /, $other;
print scalar(keys %count), " $long ", length($other), " ", scalar(@split), " ", unpack("%32C*", $other), "\n";
"#;

#[test]
fn perl() {
    says("perl", &["-e", PERL], "3841 23998 1011630 60000 68856405\n");
}
