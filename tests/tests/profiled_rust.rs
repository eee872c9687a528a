//! Profiles of programs in Rust: functions, lines and types, as our command and others show them.

use lumalloc_tests::profile_reports::{go_pprof_text, jeprof, pprof};
use lumalloc_tests::profiled::{Profiled, row};
use lumalloc_tests::run::find_program;
use lumalloc_tests::serving::{free_port, start};
use lumalloc_tests::{Run, scratch};
use std::fs;
use std::path::{Path, PathBuf};

/// A program of Rust with this text.
fn rust(directory: &str, text: &str, flags: &[&str]) -> PathBuf {
    let directory = scratch(directory);
    let source = directory.join("shop.rs");
    fs::write(&source, text).expect("written");
    let run = Run::plain(find_program("rustc")).args(["--edition", "2024"]).args(flags);
    run.args(["-o".as_ref(), directory.join("shop").as_path(), source.as_path()]).stdout();
    directory.join("shop")
}

/// Ways to build a program, which make different names.
const BUILDS: [(&[&str], &str); 4] = [
    (&["-g"], "plain"),
    (&["-g", "-O"], "optimized"),
    (&["-g", "-O", "-Csymbol-mangling-version=v0"], "v0"),
    // Rust's default allocator is inlined into its callers then.
    (&["-g", "-O", "-Clto=fat"], "lto"),
];

const SHOP: &str = "
use std::collections::HashMap;
pub struct Widget(#[allow(dead_code)] [u8; 200]);
#[inline(never)]
fn boxed(count: usize) -> Vec<Box<Widget>> {
    let mut made = Vec::with_capacity(count);
    for _ in 0..count { made.push(Box::new(Widget([1; 200]))); }
    made
}
#[inline(never)]
fn grown(count: usize) -> Vec<Widget> {
    let mut made = Vec::new();
    for _ in 0..count { made.push(Widget([2; 200])); }
    made
}
#[inline(never)]
fn table() -> HashMap<u64, Widget> {
    let mut made = HashMap::new();
    for number in 0..100 { made.insert(number, Widget([3; 200])); }
    made
}
#[inline(never)]
fn text() -> String { \"x\".repeat(3000) }
#[repr(align(64))]
pub struct Line(#[allow(dead_code)] [u8; 256]);
#[inline(never)]
fn aligned() -> Box<Line> { Box::new(Line([4; 256])) }
fn main() {
    std::mem::forget((boxed(100), grown(300), table(), text()));
    std::mem::forget(std::hint::black_box(aligned()));
}
";

/// A program with other containers.
const CONTAINERS: &str = r#"
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet, LinkedList, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Widget(#[allow(dead_code)] [u8; 200]);
fn widget(number: u64) -> Widget {
    let mut made = [0; 200];
    made[..8].copy_from_slice(&number.to_le_bytes());
    Widget(made)
}
#[inline(never)]
fn shared() -> [Arc<Mutex<Widget>>; 50] {
    std::array::from_fn(|_| Arc::new(Mutex::new(widget(1))))
}
#[inline(never)]
fn locked() -> [Arc<RwLock<Widget>>; 20] {
    std::array::from_fn(|_| Arc::new(RwLock::new(widget(2))))
}
#[inline(never)]
fn counted() -> [Rc<Widget>; 40] { std::array::from_fn(|_| Rc::new(widget(3))) }
#[inline(never)]
fn inserted() -> BTreeMap<u64, Widget> {
    let mut made = BTreeMap::new();
    for number in 0..1000 { made.insert(number * 7 % 1009, widget(4)); }
    made
}
#[inline(never)]
fn sorted() -> BTreeSet<Widget> { (0..100).map(widget).collect() }
#[inline(never)]
fn queue() -> VecDeque<Widget> {
    let mut made = VecDeque::new();
    for number in 0..300 { made.push_back(widget(number)); }
    made
}
#[inline(never)]
fn heap() -> BinaryHeap<Widget> {
    let mut made = BinaryHeap::new();
    for number in 0..300 { made.push(widget(number)); }
    made
}
#[inline(never)]
fn linked() -> LinkedList<Widget> {
    let mut made = LinkedList::new();
    for number in 0..30 { made.push_back(widget(number)); }
    made
}
#[inline(never)]
fn set() -> HashSet<Widget> { (0..100).map(widget).collect() }
#[inline(never)]
fn calls() -> Vec<Box<dyn Fn() -> u64>> {
    let one = |number| {
        let own = widget(number);
        Box::new(move || own.0[number as usize].into()) as Box<dyn Fn() -> u64>
    };
    (0..70).map(one).collect()
}
#[inline(never)]
fn words() -> [Arc<str>; 60] { std::array::from_fn(|_| Arc::from("x".repeat(100))) }
fn main() {
    std::mem::forget((shared(), locked(), counted(), inserted(), sorted()));
    std::mem::forget((queue(), heap(), linked(), set(), words(), calls()));
}
"#;

#[test]
fn functions_and_types_of_rust_are_named() {
    for (flags, build) in BUILDS {
        let name = &format!("reading-rust-{build}");
        let program = rust(&format!("{name}-source"), SHOP, flags);
        let profiled = Profiled::new(&program, name);
        let text = profiled.shown(&["heap", "mprof.data", "--bytes", "--top", "1000"]);
        assert_eq!(row(&text, "Types", "Box<shop::Widget>"), (100 * 224, 100), "{name}");
        for kind in ["Vec<shop::Widget>", "HashMap<u64, shop::Widget>"] {
            assert_eq!(row(&text, "Types", kind).1, 1, "{name}: {text}");
        }
        // 300 widgets grow to a capacity of 512.
        assert!(row(&text, "Types", "Vec<shop::Widget>").0 >= 512 * 200, "{name}");
        let sites = text.split("\nSites by ").nth(1).expect("sites");
        for site in ["shop::boxed", "shop::grown", "shop::table", "shop::text", "shop::aligned"] {
            assert!(sites.contains(&format!("  {site} (shop.rs:")), "{name}: {sites}");
        }
        assert!(profiled.shown(&["mprof", "-verbose"]).contains("> shop::main > shop::grown > "));
    }
}

/// Without debug information the whole thread is one function of Rust's library, into which the
/// program's closure is inlined.
#[test]
fn blocks_of_a_thread_without_debug_information_have_a_place() {
    let text = "fn main() {
        let fill = || (0..300).map(|n| vec![1u8; 1000 + n % 3]).collect::<Vec<_>>();
        std::thread::spawn(move || std::mem::forget(fill())).join().unwrap();
    }";
    let name = "reading-rust-thread";
    let profiled = Profiled::new(&rust(&format!("{name}-source"), text, &["-O"]), name);
    let text = profiled.shown(&["heap", "mprof.data", "--bytes", "--top", "1000"]);
    assert!(!text.contains("(no stack)"), "{text}");
    let place = "std::sys::backtrace::__rust_begin_short_backtrace";
    assert!(row(&text, "Sites", place).1 >= 300, "{text}");
    // Not that of the box in which the thread's closure was.
    assert!(row(&text, "Types", "(not known)").1 >= 300, "{text}");
}

/// A container's blocks have its type, not that of its nodes.
#[test]
fn containers_of_rust_are_named() {
    for (flags, build) in BUILDS {
        let name = &format!("containers-{build}");
        let program = rust(&format!("{name}-source"), CONTAINERS, flags);
        let profiled = Profiled::new(&program, name);
        let text = profiled.shown(&["heap", "mprof.data", "--bytes", "--top", "1000"]);
        let of = |kind: &str| row(&text, "Types", kind);
        assert_eq!(of("Arc<std::sync::poison::mutex::Mutex<shop::Widget>>"), (50 * 224, 50));
        assert_eq!(of("Arc<std::sync::poison::rwlock::RwLock<shop::Widget>>"), (20 * 256, 20));
        assert_eq!(of("Rc<shop::Widget>"), (40 * 224, 40), "{name}");
        assert_eq!(of("Arc<str>"), (60 * 128, 60), "{name}");
        assert_eq!(of("LinkedList<shop::Widget>"), (30 * 224, 30), "{name}");
        assert_eq!(of("VecDeque<shop::Widget>").1, 1, "{name}");
        let closure = "Box<shop::calls::{closure#0}::{closure#0}>";
        assert_eq!(of(closure), (70 * 224, 70), "{name}: {text}");
        // A heap is a vector.
        assert_eq!(of("Vec<shop::Widget>").1, 1, "{name}");
        assert_eq!(of("HashSet<shop::Widget>").1, 1, "{name}");
        // Leaves of eleven entries, and nodes above them.
        for (kind, entries) in
            [("BTreeMap<u64, shop::Widget>", 1000), ("BTreeSet<shop::Widget>", 100)]
        {
            let (bytes, nodes) = of(kind);
            assert!(nodes > entries / 11 && nodes < entries / 4, "{name}: {kind}: {nodes}");
            assert!(bytes > entries * 200, "{name}: {kind}: {bytes}");
        }
    }
}

/// A hundred boxes have blocks of 224 bytes, and the vector of them one of 896.
#[test]
fn jeprof_and_pprof_read_profiles_of_rust() {
    let program = rust("rust-tools-source", SHOP, &["-g"]);
    let profiled = Profiled::with(&program, "rust-tools", "mprof:true,prof_final:true");
    let files = fs::read_dir(&profiled.directory).expect("the directory");
    let mut files = files.map(|file| file.expect("a file").path());
    let heap = files.find(|file| file.extension().is_some_and(|end| end == "heap"));
    let by_jeprof = jeprof(&profiled.program, &heap.expect("a profile"), &[]);
    let mprof = profiled.directory.join("mprof.data");
    let by_pprof = pprof(Path::new(""), &mprof, "-sample_index=inuse_space", &[]);
    for report in [by_jeprof, by_pprof] {
        assert_eq!(report.with_callees("shop::boxed"), 100 * 224 + 896);
        assert_eq!(report.with_callees("shop::text"), 3072);
        assert!(report.with_callees("shop::main") > 512 * 200);
    }
}

/// Go's tool has the names and exact bytes of a running program, with those that the process found.
#[test]
fn go_tool_pprof_reads_profiles_of_rust() {
    let waits = "println!(\"ready\"); std::io::stdin().read_line(&mut String::new()).unwrap(); }\n";
    let text = SHOP.trim_end().strip_suffix('}').expect("the end of main");
    let program = rust("rust-go-source", &format!("{text}{waits}"), &["-g"]);
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let _running = start(&program, &[], &address, "prof:true,lg_prof_sample:0");
    let heap = format!("http://{address}/debug/pprof/heap?lines=true");
    let report = go_pprof_text(Path::new(&heap), &["-top", "-sample_index=inuse_space"]);
    for (function, bytes) in [("shop::boxed", 100 * 224 + 896), ("shop::text", 3072)] {
        let row = report.lines().find(|line| line.ends_with(&format!("  {function}")));
        let row: Vec<&str> = row.unwrap_or_else(|| panic!("{report}")).split_whitespace().collect();
        assert_eq!(row[3], format!("{bytes}B"), "{row:?}");
    }
}
