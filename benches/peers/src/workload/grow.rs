//! Growth by realloc: a string by a few bytes at a time, a vector by doubling.

use super::Workload;
use std::hint::black_box;

/// 24 bytes at a time to 16 KiB, without the doubling of `Vec`.
struct GrowBytes;

impl Workload for GrowBytes {
    fn name(&self) -> &'static str {
        "grow-bytes"
    }

    fn full(&self) -> u64 {
        10_000_000
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

/// 64 bytes doubled to 64 MiB; all of it is written.
struct GrowDouble;

impl Workload for GrowDouble {
    fn name(&self) -> &'static str {
        "grow-double"
    }

    fn full(&self) -> u64 {
        210
    }

    fn run(&mut self, operations: u64) -> u64 {
        let mut done = 0;
        while done < operations {
            let mut vector: Vec<u64> = Vec::new();
            let mut size = 8;
            while size <= (64 << 20) / 8 {
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

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![Box::new(GrowBytes), Box::new(GrowDouble)]
}
