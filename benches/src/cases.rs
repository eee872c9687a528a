//! The cases: a workload together with the way the allocator gets into its process ([`Door`]), and
//! the ratio to the reference that it has to reach.

use crate::peers::Peer;

/// How the allocator gets into the process, which decides the program that runs the workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Door {
    /// `benches/c`, with the allocator preloaded.
    C,
    /// `benches/peers`, with the allocator linked as `#[global_allocator]`.
    Rust,
}

impl Door {
    /// The name before the slash in the names of cases.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Rust => "rust",
        }
    }

    /// Whether the peer can be used in this way.
    pub(crate) fn admits(self, peer: &Peer) -> bool {
        match self {
            Self::C => true,
            Self::Rust => peer.rust.is_some(),
        }
    }
}

/// A workload of both programs. The groups are those of the README: a micro, b threads, c large.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) group: char,
    /// The highest allowed ratio to the reference, from C and from Rust.
    targets: (Option<f64>, Option<f64>),
    /// Whether its process is also measured after it has idled.
    pub(crate) idles: bool,
    /// Whether its instructions are counted: it has one thread and many operations that all do the
    /// same.
    pub(crate) counted: bool,
}

impl Workload {
    const fn new(name: &'static str, group: char) -> Self {
        Self { name, group, targets: (None, None), idles: false, counted: false }
    }

    const fn idles(self) -> Self {
        Self { idles: true, ..self }
    }

    const fn counted(self) -> Self {
        Self { counted: true, ..self }
    }

    const fn at_most(name: &'static str, group: char, c: f64, rust: f64) -> Self {
        Self { targets: (Some(c), Some(rust)), ..Self::new(name, group) }
    }
}

/// The target of producer/consumer pairs: at least 1.5 times as fast.
const EXCHANGE: f64 = 1.0 / 1.5;

/// Every workload, by the names that both programs know.
pub(crate) const WORKLOADS: [Workload; 47] = [
    Workload::at_most("pair", 'a', 1.1, 0.5).counted(),
    Workload::new("pair-mixed", 'a').counted(),
    Workload::new("lifo", 'a').counted(),
    Workload::new("fifo", 'a').counted(),
    Workload::new("random-1e2", 'a').counted(),
    Workload::new("random-1e3", 'a').counted(),
    Workload::new("random-1e5", 'a').idles(),
    Workload::new("random-1e6", 'a'),
    Workload::new("class-16", 'a').counted(),
    Workload::new("class-128", 'a').counted(),
    Workload::new("class-1024", 'a').counted(),
    Workload::new("class-4096", 'a').counted(),
    Workload::new("class-32768", 'a').counted(),
    Workload::new("aligned", 'a').counted(),
    Workload::new("calloc", 'a').counted(),
    Workload::new("calloc-large", 'a'),
    Workload::new("grow-bytes", 'a').counted(),
    Workload::new("grow-many", 'a').counted(),
    Workload::new("grow-double", 'a').idles(),
    Workload::new("grow-huge", 'a'),
    Workload::at_most("exchange-64", 'b', EXCHANGE, EXCHANGE),
    Workload::at_most("exchange-mixed", 'b', EXCHANGE, EXCHANGE).idles(),
    Workload::at_most("handover-64", 'b', EXCHANGE, EXCHANGE),
    Workload::at_most("handover-shuffled", 'b', EXCHANGE, EXCHANGE),
    Workload::at_most("handover-mixed", 'b', EXCHANGE, EXCHANGE).idles(),
    Workload::new("exchange-16", 'b'),
    Workload::new("larson-1", 'b'),
    Workload::new("larson", 'b'),
    Workload::new("larson-4", 'b'),
    Workload::new("larson-16", 'b').idles(),
    Workload::new("larson-64", 'b'),
    Workload::new("mstress-2", 'b'),
    Workload::new("mstress-16", 'b').idles(),
    Workload::new("mstress-64", 'b'),
    Workload::new("batches-1", 'b'),
    Workload::new("batches-2", 'b'),
    Workload::new("batches-16", 'b').idles(),
    Workload::new("batches-64", 'b'),
    Workload::new("thrash", 'b'),
    Workload::new("scratch", 'b'),
    Workload::new("idle-threads", 'b').idles(),
    Workload::new("producer", 'b').idles(),
    Workload::new("large", 'c').idles(),
    Workload::new("extents", 'c').idles(),
    Workload::new("buffers-2", 'c'),
    Workload::new("buffers-16", 'c').idles(),
    Workload::new("grow-4", 'c').idles(),
];

/// A workload in one of the two programs.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) workload: &'static Workload,
    pub(crate) door: Door,
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        self.workload.name == other.workload.name && self.door == other.door
    }
}

impl Case {
    /// `door/workload`, as in the tables and for `--only`.
    pub(crate) fn name(self) -> String {
        format!("{}/{}", self.door.name(), self.workload.name)
    }

    /// The highest allowed ratio to the reference, if there is a target.
    pub(crate) fn target(self) -> Option<f64> {
        match self.door {
            Door::C => self.workload.targets.0,
            Door::Rust => self.workload.targets.1,
        }
    }
}

/// The cases that a list of filters selects. A filter is a workload, a door with a slash, both, or
/// `group-a`. Without filters, all cases.
pub(crate) fn chosen(filters: &[String]) -> Result<Vec<Case>, String> {
    let all: Vec<Case> = [Door::C, Door::Rust]
        .into_iter()
        .flat_map(|door| WORKLOADS.iter().map(move |workload| Case { workload, door }))
        .collect();
    let asks_for = |filter: &String, case: &Case| {
        *filter == case.name()
            || filter == case.workload.name
            || *filter == format!("{}/", case.door.name())
            || *filter == format!("group-{}", case.workload.group)
    };
    if let Some(unknown) = filters.iter().find(|f| !all.iter().any(|case| asks_for(f, case))) {
        return Err(format!("no workload called {unknown}; `lumalloc-bench list` shows them"));
    }
    let wanted = |case: &Case| filters.is_empty() || filters.iter().any(|f| asks_for(f, case));
    Ok(all.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::{Door, WORKLOADS, chosen};

    #[test]
    fn a_filter_names_a_workload_a_door_or_both() {
        let names = |filter: &str| -> Vec<String> {
            chosen(&[filter.to_owned()]).unwrap().iter().map(|case| case.name()).collect()
        };
        assert_eq!(names("pair"), ["c/pair", "rust/pair"]);
        assert_eq!(names("rust/pair"), ["rust/pair"]);
        assert_eq!(names("c/").len(), WORKLOADS.len());
        assert_eq!(names("group-c").len(), 10);
        assert_eq!(chosen(&[]).unwrap().len(), 2 * WORKLOADS.len());
        assert!(chosen(&["nothing".to_owned()]).is_err());
    }

    #[test]
    fn every_workload_has_a_page() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
        let page = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path()).unwrap();
        let pages: Vec<String> =
            std::fs::read_dir(docs).unwrap().map(|entry| page(entry.unwrap())).collect();
        for workload in &WORKLOADS {
            let name = format!("`{}`", workload.name);
            let told = pages.iter().any(|page| {
                page.contains(&name) && page.contains("**Stresses**") && page.contains("**Does not")
            });
            assert!(told, "no page of benches/docs describes {name}");
        }
    }

    #[test]
    fn the_issue_s_targets_are_set() {
        let target = |name: &str| chosen(&[name.to_owned()]).unwrap()[0].target();
        assert_eq!(target("c/pair"), Some(1.1));
        assert_eq!(target("rust/pair"), Some(0.5));
        assert_eq!(target("c/larson"), None);
        assert!(chosen(&["c/".to_owned()]).unwrap().iter().all(|case| case.door == Door::C));
    }
}
