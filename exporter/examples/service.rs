//! A service at work and its exporter, to look at. The tests of the page open it.
//!
//! ```text
//! cargo run --release -p lumalloc-exporter --example service --
//!     [ADDRESS] [idle] [token=FILE] [dumps=PATH]
//! ```
//!
//! Three workers serve requests. For each they allocate blocks, answer, and free most of the
//! blocks. Two tenants have their own arenas: `sessions` grows and shrinks. `import` was filled
//! once and then freed, and keeps its pages until they are purged. Blocks of two regions come and
//! go: `documents` and `nodes`. With `idle`, the process does nothing.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use lumalloc::Arena;
use lumalloc::control::arenas::{self, Pages};
use lumalloc_exporter::Exporter;
use lumalloc_region::{Best, Heap, Pool, Region};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// The pause between two steps of a worker.
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes of the pages that `import` leaves unused.
const IMPORTED: usize = 80 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Exporter::builder();
    let mut is_idle = false;
    for argument in std::env::args().skip(1) {
        if argument == "idle" {
            is_idle = true;
        } else if let Some(file) = argument.strip_prefix("token=") {
            builder = builder.token_file(file);
        } else if let Some(directory) = argument.strip_prefix("dumps=") {
            builder = builder.dump_directory(directory);
        } else {
            builder = builder.listen(argument.parse()?);
        }
    }
    let exporter = builder.start()?;
    if let Some(address) = exporter.address() {
        println!("http://{address}/");
    }
    if !is_idle {
        import();
        thread::spawn(sessions);
        thread::spawn(documents);
        let (answers, log) = channel::<Vec<u8>>();
        for seed in 1..=3 {
            let answers = answers.clone();
            thread::spawn(move || work(seed, &answers));
        }
        // Frees what the workers allocated.
        thread::spawn(move || log.iter().for_each(drop));
    }
    loop {
        thread::park();
    }
}

/// Numbers that vary enough for this service.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % sides
    }

    /// Returns small sizes often, and large ones seldom.
    fn size(&mut self) -> usize {
        let lg = 4 + self.throw(9);
        16 + self.throw(1 << lg)
    }
}

/// Keeps documents in a region, some of which are replaced, and nodes in a pool.
fn documents() {
    let documents: Region<Best, Heap> = Region::open(Heap).expect("memory");
    let documents = documents.publish("documents").expect("memory");
    let nodes: Region<Pool, Heap> = Region::open(Heap).expect("memory");
    let nodes = nodes.publish("nodes").expect("memory");
    let (mut dice, mut kept) = (Dice(77), VecDeque::with_capacity(1 << 14));
    loop {
        for _ in 0..200 {
            kept.extend(documents.alloc(dice.size()).zip(nodes.alloc(48)));
            if kept.len() > 10_000 {
                let place = dice.throw(kept.len());
                let (document, node) = kept.swap_remove_back(place).expect("one of them");
                // SAFETY: the block is used no more.
                unsafe { documents.free(document) }.expect("a block of the region");
                // SAFETY: the block is used no more.
                unsafe { nodes.free(node) }.expect("a block of the pool");
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Serves requests. Each allocates some hundred blocks, a few of which outlive it.
fn work(seed: u64, answers: &Sender<Vec<u8>>) {
    let mut dice = Dice(seed << 32 | 0x9e37_79b9);
    let mut kept = VecDeque::new();
    loop {
        for _ in 0..40 {
            let blocks: Vec<Vec<u8>> = (0..200).map(|_| vec![1; dice.size()]).collect();
            kept.extend(blocks.into_iter().step_by(50));
            let _ = answers.send(vec![2; dice.size()]);
        }
        while kept.len() > 20_000 {
            kept.pop_front();
        }
        thread::sleep(PAUSE);
    }
}

/// Runs a tenant whose sessions come and go in waves.
fn sessions() {
    let Some(arena) = Arena::named("sessions") else { return };
    let Ok(_scope) = arena.enter() else { return };
    let mut dice = Dice(7);
    let mut sessions: Vec<Vec<u8>> = Vec::new();
    for step in 0_u32.. {
        let wanted = 6_000 + ((step % 1_000).abs_diff(500) * 20) as usize;
        while sessions.len() < wanted {
            sessions.push(vec![3; 512 + dice.throw(8_192)]);
        }
        for _ in 0..80 {
            let place = dice.throw(sessions.len());
            sessions.swap_remove(place);
        }
        sessions.truncate(wanted);
        thread::sleep(PAUSE);
    }
}

/// Runs a tenant that ends, and keeps its unused pages.
fn import() {
    let Some(arena) = Arena::named("import") else { return };
    // The arena was just made, so it exists.
    let _ = arenas::set_decay_ms(arena.index(), Pages::Dirty, -1);
    let _ = arena.run(|| {
        let rows: Vec<Vec<u8>> = (0..IMPORTED >> 16).map(|_| vec![4; 1 << 16]).collect();
        drop(rows);
    });
}
