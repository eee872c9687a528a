//! The file format gzip (RFC 1952), with blocks that are stored as they are (RFC 1951, 3.2.4).
//!
//! A compressor needs memory, which may have run out.

use crate::sink::Sink;
use crc::{CRC_32_ISO_HDLC, Crc, Digest, Table};

/// Bytes before those of a block: whether it is the last one, and their number twice.
const HEAD: usize = 5;
/// The most bytes of a block, with what stands before them. They lie on the stack of a thread.
const BLOCK: usize = HEAD + 4096;
/// Bytes that the checksum takes at a time.
const PIECE: usize = 16;
/// Magic number, method "deflate", no flags, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

static CHECKSUM: Crc<u32, Table<PIECE>> = Crc::<u32, Table<PIECE>>::new(&CRC_32_ISO_HDLC);

/// Writes bytes to a sink as a gzip file.
pub(crate) struct Gzip<'a> {
    sink: &'a mut dyn Sink,
    block: [u8; BLOCK],
    /// Bytes of the block, with what stands before them.
    used: usize,
    checksum: Digest<'static, u32, Table<PIECE>>,
    length: u32,
    is_whole: bool,
}

impl<'a> Gzip<'a> {
    /// Begins a file.
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Gzip<'a> {
        let is_whole = sink.put(&HEADER);
        let checksum = CHECKSUM.digest();
        Gzip { sink, block: [0; BLOCK], used: HEAD, checksum, length: 0, is_whole }
    }

    fn flush(&mut self, is_last: bool) {
        let bytes = self.block.get(HEAD..self.used).unwrap_or_default();
        // Code for pieces of unknown lengths would have checks that can panic.
        let (pieces, rest) = bytes.as_chunks::<PIECE>();
        pieces.iter().for_each(|piece| self.checksum.update(piece));
        rest.iter().for_each(|byte| self.checksum.update(core::slice::from_ref(byte)));
        self.length = self.length.wrapping_add(bytes.len() as u32);
        let length = bytes.len() as u16;
        let [low, high] = length.to_le_bytes();
        let [not_low, not_high] = (!length).to_le_bytes();
        let head: [u8; HEAD] = [u8::from(is_last), low, high, not_low, not_high];
        for (place, byte) in self.block.iter_mut().zip(head) {
            *place = byte;
        }
        let block = self.block.get(..self.used).unwrap_or_default();
        self.is_whole = self.is_whole && self.sink.put(block);
        self.used = HEAD;
    }

    /// Ends the file. Returns `false` if anything was lost.
    pub(crate) fn end(&mut self) -> bool {
        self.flush(true);
        let Gzip { sink, checksum, length, is_whole, .. } = self;
        let checksum = checksum.clone().finalize();
        *is_whole && sink.put(&checksum.to_le_bytes()) && sink.put(&length.to_le_bytes())
    }
}

impl Sink for Gzip<'_> {
    fn put(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.used == BLOCK {
                self.flush(false);
            }
            let room = self.block.get_mut(self.used..).unwrap_or_default();
            let length = room.len().min(rest.len());
            let (now, later) = rest.split_at_checked(length).unwrap_or_default();
            if let Some(room) = room.get_mut(..length) {
                room.copy_from_slice(now);
            }
            self.used += length;
            rest = later;
        }
        self.is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::vec::Vec;

    #[test]
    fn a_gzip_reader_finds_the_same_bytes() {
        for length in [0, 1, BLOCK - HEAD, BLOCK - HEAD + 1, BLOCK, 70_000] {
            let bytes: Vec<u8> = (0..length).map(|n| (n * 7 % 251) as u8).collect();
            let mut file = Vec::new();
            let mut gzip = Gzip::new(&mut file);
            assert!(bytes.chunks(1000).all(|piece| gzip.put(piece)) && gzip.end());
            let mut read = Vec::new();
            flate2::read::GzDecoder::new(&file[..]).read_to_end(&mut read).expect("gzip");
            assert_eq!(read, bytes);
        }
    }

    #[test]
    fn a_lost_piece_is_told() {
        struct Full(usize);
        impl Sink for Full {
            fn put(&mut self, bytes: &[u8]) -> bool {
                self.0 = self.0.saturating_sub(bytes.len());
                self.0 > 0
            }
        }
        for room in [1, 12, 20] {
            let mut full = Full(room);
            let mut gzip = Gzip::new(&mut full);
            gzip.put(b"some bytes");
            assert!(!gzip.end(), "{room}");
        }
    }
}
