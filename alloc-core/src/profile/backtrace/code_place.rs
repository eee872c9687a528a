//! Where code lies: the file that it was loaded from, and the place in it.

use super::modules;
use crate::ground::{files, own_files};

/// The longest name of a file that is kept.
const MOST: usize = 48;

/// Where code lies: in which file, and at which address in it, as tools that read the file's
/// symbols take it.
#[derive(Clone, Copy, Debug)]
pub struct CodePlace {
    name: [u8; MOST],
    length: usize,
    /// The address in the file.
    pub offset: usize,
}

impl CodePlace {
    /// Returns the name of the file, without the folders, or at most the end of it.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.get(..self.length).unwrap_or_default()
    }

    fn new(path: &[u8], offset: usize) -> CodePlace {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let end = name.get(name.len().saturating_sub(MOST)..).unwrap_or_default();
        let mut place = CodePlace { name: [0; MOST], length: end.len(), offset };
        for (slot, byte) in place.name.iter_mut().zip(end) {
            *slot = *byte;
        }
        place
    }
}

/// Returns where the code at an address lies, or `None` if it is in no loaded file.
pub(crate) fn code_place(address: usize) -> Option<CodePlace> {
    let mut path = [0; 4096];
    let loaded = modules::loaded_file(address)?;
    let offset = address.wrapping_sub(loaded.base);
    if loaded.path.is_empty() {
        // The program itself.
        let mut length = |link| files::link(link, &mut path).map(<[u8]>::len);
        let length = own_files::PROGRAM.into_iter().find_map(&mut length);
        let path = length.and_then(|length| path.get(..length)).unwrap_or(b"program");
        return Some(CodePlace::new(path, offset));
    }
    Some(CodePlace::new(loaded.path, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_path_the_end_is_kept() {
        let name = |path: &[u8]| CodePlace::new(path, 0).name().to_vec();
        assert_eq!(name(b"/usr/lib/libx.so"), b"libx.so");
        assert_eq!(name(b"program"), b"program");
        let long = [b'a'; 100];
        assert_eq!(name(&long), [b'a'; MOST]);
    }

    #[test]
    fn code_of_the_program_and_of_a_library_is_found() {
        let own = code_place(code_place as *const () as usize).expect("the program");
        assert!(own.name().starts_with(b"lumalloc-"), "{own:?}");
        let of_c = code_place(libc::abort as *const () as usize).expect("the C library");
        assert!(of_c.name().starts_with(b"libc."), "{of_c:?}");
        assert!(of_c.offset < 64 << 20);
    }
}
