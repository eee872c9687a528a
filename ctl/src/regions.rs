//! The regions of vmalloc(3) that are open.

use lumalloc::observe::regions;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::string::String;
use std::vec::Vec;

/// Bytes of a path that are kept.
const FILE_BYTES: usize = 255;

/// An open region. The numbers are 0 if a call stayed in the region at each look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The number of the region: the index in `vm.region.<i>`.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// `best`, `last`, `pool`, `debug` or `profile`.
    pub method: String,
    /// Where its memory comes from: `system`, `heap`, `file`, `segment` or `program`.
    pub discipline: String,
    /// Method and flags as bits.
    pub flags: u32,
    /// The address of its handle, or of its first segment.
    pub address: usize,
    /// The path of its file, if it lies in one.
    pub file: Option<String>,
    /// Blocks that the program has.
    pub n_busy: usize,
    /// Bytes in them.
    pub s_busy: usize,
    /// Bytes of the largest one.
    pub m_busy: usize,
    /// Free blocks.
    pub n_free: usize,
    /// Bytes in them.
    pub s_free: usize,
    /// Bytes of the largest one.
    pub m_free: usize,
    /// Segments.
    pub n_seg: usize,
    /// Bytes in segments.
    pub extent: usize,
    /// The process that is in a call of a region of several processes, or ended in one; 0: none.
    pub holder: u32,
    /// Whether that process exists.
    pub holder_alive: bool,
}

/// Returns all regions. Their numbers are those of an epoch.
pub(crate) fn all(epoch: u64) -> Vec<Region> {
    (0..regions::end()).filter_map(|index| one(index, epoch)).collect()
}

fn one(index: usize, epoch: u64) -> Option<Region> {
    let about = regions::about(index)?;
    let name = regions::name(index)?;
    let counts = regions::counts(index, epoch).unwrap_or_default();
    let text = |text: &CStr| text.to_string_lossy().into_owned();
    Some(Region {
        index,
        name: CStr::from_bytes_until_nul(&name).map_or(String::new(), text),
        method: text(about.method),
        discipline: text(about.discipline),
        flags: about.flags,
        address: about.address,
        file: file(index),
        n_busy: counts.busy,
        s_busy: counts.busy_bytes,
        m_busy: counts.busy_largest,
        n_free: counts.free,
        s_free: counts.free_bytes,
        m_free: counts.free_largest,
        n_seg: counts.segments,
        extent: counts.extent,
        holder: about.holder.map_or(0, |holder| holder.process),
        holder_alive: about.holder.is_none_or(|holder| holder.is_alive),
    })
}

fn file(index: usize) -> Option<String> {
    let mut path = [0; FILE_BYTES];
    let length = regions::file(index, &mut path).filter(|length| *length > 0)?;
    Some(String::from_utf8_lossy(path.get(..length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Snapshot, keys};
    use lumalloc_region::{Heap, Last, Region as OfRust};

    #[test]
    fn a_snapshot_has_each_region() {
        let region: OfRust<Last, Heap> = OfRust::open(Heap).unwrap();
        let region = region.publish("a parse").unwrap();
        region.alloc(100).unwrap();
        let all = Snapshot::take().regions;
        let [mine] = all.as_slice() else { panic!("{all:?}") };
        let texts = [&mine.name, &mine.method, &mine.discipline];
        assert_eq!(texts.map(String::as_str), ["a parse", "last", "heap"]);
        assert_eq!((mine.index, mine.n_busy, mine.s_busy), (region.number(), 1, 112));
        assert_eq!((mine.n_seg, mine.extent), (1, region.extent()));
        assert_eq!((mine.holder, mine.holder_alive, &mine.file), (0, true, &None));
        assert_eq!(keys::vm::region::N_BUSY.at([mine.index]).unwrap().read(), Ok(1));
    }
}
