//! The programs: their command lines, their sizes, and the file in each that calls malloc.
//!
//! A command line is a template. Words are separated by spaces. `{percent}` stands for the scale,
//! `{percent*N}` for N times the scale, `{seconds}` for the time of clients that run for a given
//! time, `{programs}` for the directory `benches/programs`, `{made}` for the directory of generated
//! and built files, `{address}` for where a server listens, `''` for an empty word. Words
//! `NAME=value` at the beginning go to the environment. A last word `<FILE` is the standard input.

/// How a program runs.
pub(crate) enum Role {
    /// Runs once, to its end.
    Batch(&'static str),
    /// Runs as a server. The line of its output that contains `ready` ends in its address. The
    /// clients use the C library's malloc and run one after the other.
    Server { server: &'static str, ready: &'static str, clients: &'static [&'static str] },
}

/// One program.
pub(crate) struct Program {
    /// The name in the tables and for `--only`.
    pub(crate) name: &'static str,
    /// The beginning of the name of the file whose malloc has to be that of the peer.
    pub(crate) worker: &'static str,
    /// The commands that it needs, each with its Debian package.
    pub(crate) tools: &'static [(&'static str, &'static str)],
    pub(crate) role: Role,
}

const fn batch(
    name: &'static str,
    worker: &'static str,
    tools: &'static [(&'static str, &'static str)],
    line: &'static str,
) -> Program {
    Program { name, worker, tools, role: Role::Batch(line) }
}

const fn redis(name: &'static str, clients: &'static [&'static str]) -> Program {
    Program {
        name,
        worker: "redis-server",
        tools: &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
        role: Role::Server {
            server: "redis-server --port 0 --unixsocket {made}/redis.sock --save '' \
                     --dir {made} --daemonize no",
            ready: "ready to accept connections at",
            clients,
        },
    }
}

/// Every program, with a size that takes about a second at 100 per cent. Much shorter runs drown in
/// the noise of the machine, and for more precision there are rounds. Debian's `redis-server` is
/// linked to jemalloc, so the C library's malloc has to be preloaded like those of the peers.
pub(crate) static PROGRAMS: [Program; 15] = [
    redis(
        "redis-64",
        &["redis-benchmark -s {address} -q -n {percent*400} -c 50 -P 16 -r 100000 -d 64 \
           -t set,get,incr,lpush,lpop,sadd,hset,spop,zadd,mset,lrange_100"],
    ),
    redis(
        "redis-1k",
        &[
            "redis-benchmark -s {address} -q -n {percent*400} -c 50 -r 100000 -d 1000 -t set,get,lpush,lpop",
        ],
    ),
    redis(
        "redis-16k",
        &[
            "redis-benchmark -s {address} -q -n {percent*250} -c 50 -P 4 -r 4000 -d 16000 -t set,get",
            "redis-benchmark -s {address} -q -n {percent*250} -c 50 -P 4 -r 4000 -d 7000 -t set,get",
            "redis-benchmark -s {address} -q -n {percent*40} -c 50 -P 4 -d 7000 -t lpush,lpop",
        ],
    ),
    batch(
        "sqlite",
        "libsqlite3.so",
        &[("sqlite3", "sqlite3")],
        "sqlite3 -batch :memory: <{made}/rows.sql",
    ),
    batch(
        "python",
        "python3",
        &[("/usr/bin/python3", "python3")],
        "/usr/bin/python3 {programs}/objects.py {percent}",
    ),
    batch(
        "python-malloc",
        "python3",
        &[("/usr/bin/python3", "python3")],
        "PYTHONMALLOC=malloc /usr/bin/python3 {programs}/objects.py {percent}",
    ),
    batch("lua", "lua5.4", &[("lua5.4", "lua5.4")], "lua5.4 {programs}/trees.lua {percent}"),
    batch(
        "perl",
        "perl",
        &[("/usr/bin/perl", "perl")],
        "/usr/bin/perl {programs}/words.pl {percent}",
    ),
    batch("z3", "z3", &[("z3", "z3")], "z3 -smt2 {made}/factors.smt2"),
    batch(
        "ghostscript",
        "libgs.so",
        &[("gs", "ghostscript")],
        "gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfwrite -dpages={percent*2} \
         -sOutputFile=/dev/null {programs}/document.ps",
    ),
    batch("gcc", "cc1", &[("gcc", "gcc")], "gcc -S -O2 -o /dev/null {made}/functions.c"),
    batch(
        "g++",
        "cc1plus",
        &[("g++", "g++")],
        "g++ -S -O1 -std=c++17 -o /dev/null {made}/shapes.cc",
    ),
    batch(
        "rustc",
        "librustc_driver",
        &[("gcc", "gcc"), ("nm", "binutils")],
        "{made}/rustc --edition=2021 --crate-type=lib --emit=obj -O -o {made}/modules.o {made}/modules.rs",
    ),
    Program {
        name: "http",
        worker: "http",
        tools: &[("wrk", "wrk")],
        role: Role::Server {
            server: "{made}/http",
            ready: "listening",
            clients: &["wrk -t 1 -c 32 -d {seconds} -s {programs}/requests.lua http://{address}"],
        },
    },
    batch("documents", "documents", &[], "{made}/documents {percent}"),
];

/// The programs with these names; all programs for no name.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Program>, String> {
    if let Some(unknown) = names.iter().find(|name| PROGRAMS.iter().all(|p| p.name != **name)) {
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        return Err(format!("no program called {unknown}; there are {}", known.join(", ")));
    }
    let wanted = |program: &&Program| names.is_empty() || names.iter().any(|n| n == program.name);
    Ok(PROGRAMS.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn names_choose() {
        let names = |list: &[&str]| -> Vec<&str> {
            let list: Vec<String> = list.iter().map(|name| (*name).to_owned()).collect();
            chosen(&list).unwrap().iter().map(|program| program.name).collect()
        };
        assert_eq!(names(&["z3", "lua"]), ["lua", "z3"]);
        assert_eq!(names(&[]).len(), 15);
        assert!(chosen(&["word".to_owned()]).is_err());
    }
}
