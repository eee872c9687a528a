//! Collectors: families that are read together. Most are always read. Those with every detail must
//! be asked for by `?collect[]=NAME`.

/// A collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Group {
    /// Facts of the build, and settings of the start.
    Build,
    /// The current settings.
    Settings,
    /// Where the memory is, as the allocator counts it.
    Memory,
    /// Memory as the system counts it.
    Process,
    /// Allocations.
    Traffic,
    /// The work of the slow paths.
    Work,
    /// Locks by rank.
    Locks,
    /// Memory that was given back to the system.
    Purging,
    /// Arenas by name.
    NamedArenas,
    /// Regions of vmalloc(3) by name.
    Regions,
    /// Every arena by index. Detail.
    Arenas,
    /// Small classes. Detail.
    Bins,
    /// Large classes. Detail.
    Lextents,
    /// Unused runs of pages. Detail.
    Extents,
    /// Every lock by its name. Detail.
    Mutexes,
    /// The slow paths, finely. Detail.
    Engine,
    /// The exporter itself.
    Exporter,
}

impl Group {
    /// All collectors, in the order in which they are read.
    pub const ALL: [Group; 17] = [
        Group::Build,
        Group::Settings,
        Group::Memory,
        Group::Process,
        Group::Traffic,
        Group::Work,
        Group::Locks,
        Group::Purging,
        Group::NamedArenas,
        Group::Regions,
        Group::Arenas,
        Group::Bins,
        Group::Lextents,
        Group::Extents,
        Group::Mutexes,
        Group::Engine,
        Group::Exporter,
    ];

    /// Returns the name, as in `?collect[]=` and in the label `collector`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Build => "build",
            Group::Settings => "settings",
            Group::Memory => "memory",
            Group::Process => "process",
            Group::Traffic => "traffic",
            Group::Work => "work",
            Group::Locks => "locks",
            Group::Purging => "purging",
            Group::NamedArenas => "named_arenas",
            Group::Regions => "regions",
            Group::Arenas => "arenas",
            Group::Bins => "bins",
            Group::Lextents => "lextents",
            Group::Extents => "extents",
            Group::Mutexes => "mutexes",
            Group::Engine => "engine",
            Group::Exporter => "exporter",
        }
    }

    /// Whether the collector is read only when it is asked for.
    #[must_use]
    pub fn is_detail(self) -> bool {
        use Group::{Arenas, Bins, Engine, Extents, Lextents, Mutexes};
        matches!(self, Arenas | Bins | Lextents | Extents | Mutexes | Engine)
    }
}

/// A set of collectors: those that are always read, and some more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups(u32);

impl Default for Groups {
    fn default() -> Groups {
        Groups::of(|group| !group.is_detail())
    }
}

impl Groups {
    /// Returns all collectors.
    #[cfg(test)]
    pub(crate) fn all() -> Groups {
        Groups::of(|_| true)
    }

    fn of(wanted: impl Fn(Group) -> bool) -> Groups {
        let wanted = Group::ALL.into_iter().filter(|group| wanted(*group));
        Groups(wanted.fold(0, |set, group| set | 1 << group as u8))
    }

    pub(crate) fn without(self, group: Group) -> Groups {
        Groups(self.0 & !(1 << group as u8))
    }

    pub(crate) fn has(self, group: Group) -> bool {
        self.0 >> group as u8 & 1 != 0
    }

    /// Returns this set with the named collectors added. Commas separate their names.
    ///
    /// # Errors
    /// The text of the answer for a name that no collector has.
    pub(crate) fn with(self, names: &str) -> Result<Groups, String> {
        names.split(',').try_fold(self, |set, name| {
            let found = Group::ALL.into_iter().find(|group| group.name() == name);
            match found {
                Some(group) => Ok(Groups(set.0 | 1 << group as u8)),
                None => Err(unknown(name)),
            }
        })
    }
}

fn unknown(name: &str) -> String {
    let details: Vec<&str> =
        Group::ALL.iter().filter(|group| group.is_detail()).map(|group| group.name()).collect();
    let always: Vec<&str> =
        Group::ALL.iter().filter(|group| !group.is_detail()).map(|group| group.name()).collect();
    format!(
        "no collector {name:?}; collect[] adds {}; always there are {}",
        details.join(", "),
        always.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_is_asked_for_by_name() {
        let plain = Groups::default();
        assert!(plain.has(Group::Memory) && !plain.has(Group::Bins));
        let more = plain.with("bins,mutexes").unwrap();
        assert!(more.has(Group::Bins) && more.has(Group::Mutexes) && !more.has(Group::Arenas));
        assert_eq!(plain.with("memory"), Ok(plain));
        for (at, group) in Group::ALL.into_iter().enumerate() {
            assert_eq!(group as usize, at);
        }
    }

    #[test]
    fn another_name_is_answered_with_all_there_are() {
        let list = "collect[] adds arenas, bins, lextents, extents, mutexes, engine; always there \
                    are build, settings, memory, process, traffic, work, locks, purging, \
                    named_arenas, regions, exporter";
        for name in ["heap", "", "Bins", "\"\n"] {
            let error = Groups::default().with(name).unwrap_err();
            assert_eq!(error, format!("no collector {name:?}; {list}"));
        }
        let error = Groups::default().with("bins,,arenas").unwrap_err();
        assert_eq!(error, format!("no collector \"\"; {list}"));
    }
}
