//! Growth by realloc: a string by a few bytes at a time, a vector by doubling.

use super::Workload;
use std::hint::black_box;
use std::thread;

/// 24 bytes at a time to 16 KiB, without the doubling of `Vec`.
struct GrowBytes;

impl Workload for GrowBytes {
    fn name(&self) -> &'static str {
        "grow-bytes"
    }

    fn full(&self) -> u64 {
        17_000_000
    }

    fn run(&mut self, operations: u64) -> u64 {
        let mut done = 0;
        while done < operations {
            let mut text: Vec<u8> = Vec::new();
            while text.len() + 24 <= 16_384 {
                text.reserve_exact(24);
                text.extend_from_slice(&[b'x'; 24]);
                done += 1;
            }
            black_box(&text);
        }
        done
    }
}

/// 64 strings in turn, each by 24 bytes to 2 KiB: nobody has free space behind it for long.
struct GrowMany;

impl Workload for GrowMany {
    fn name(&self) -> &'static str {
        "grow-many"
    }

    fn full(&self) -> u64 {
        19_040_000
    }

    fn run(&mut self, operations: u64) -> u64 {
        let mut done = 0;
        while done < operations {
            let mut texts: [Vec<u8>; 64] = std::array::from_fn(|_| Vec::new());
            for _ in 0..2048 / 24 {
                for text in &mut texts {
                    text.reserve_exact(24);
                    text.extend_from_slice(&[b'x'; 24]);
                    done += 1;
                }
            }
            black_box(&texts);
        }
        done
    }
}

/// Doubled from 64 bytes; all of it is written.
struct Doubled {
    name: &'static str,
    vectors: u64,
    end: usize,
}

impl Workload for Doubled {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        self.vectors * u64::from((self.end / 64).ilog2() + 1)
    }

    fn run(&mut self, operations: u64) -> u64 {
        let mut done = 0;
        while done < operations {
            let mut vector: Vec<u64> = Vec::new();
            let mut size = 8;
            while size <= self.end / 8 {
                vector.reserve_exact(size - vector.len());
                vector.resize(size, done);
                size *= 2;
                done += 1;
            }
            black_box(&vector);
        }
        done
    }
}

/// Four threads, each with a vector that grows by a half at a time to 16 MiB; all of it is written.
struct ByHalves;

/// The sizes of one vector, in bytes.
fn halves() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(64), |size| Some(size + size / 2 + 7))
        .take_while(|size| *size <= 16 << 20)
}

impl ByHalves {
    const THREADS: u64 = 4;

    fn grow(vectors: u64) {
        for number in 0..vectors {
            let mut vector: Vec<u8> = Vec::new();
            for size in halves() {
                vector.reserve_exact(size - vector.len());
                vector.resize(size, number as u8 | 1);
            }
            black_box(&vector);
        }
    }
}

impl Workload for ByHalves {
    fn name(&self) -> &'static str {
        "grow-4"
    }

    fn full(&self) -> u64 {
        Self::THREADS * 40 * halves().count() as u64
    }

    fn run(&mut self, operations: u64) -> u64 {
        let of_one = halves().count() as u64;
        let vectors = (operations / of_one / Self::THREADS).max(1);
        thread::scope(|scope| {
            for _ in 0..Self::THREADS {
                scope.spawn(move || Self::grow(vectors));
            }
        });
        vectors * of_one * Self::THREADS
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(GrowBytes),
        Box::new(GrowMany),
        Box::new(Doubled { name: "grow-double", vectors: 10, end: 64 << 20 }),
        Box::new(Doubled { name: "grow-huge", vectors: 1, end: 1 << 30 }),
        Box::new(ByHalves),
    ]
}
