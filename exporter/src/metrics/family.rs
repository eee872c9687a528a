//! A family of metrics: its name, what it counts, and where its numbers come from.
use super::group::Group;
use super::kinds::{Classes, Kind, Unit};
use super::reader::{Reader, concrete};
use super::sample::Sample;
use crate::namespace::row_of;
use lumalloc_ctl::Error;
use lumalloc_namespace::Fact;

/// One family of metrics.
///
/// ```
/// let families = lumalloc_exporter::metrics::families();
/// let allocated = families.iter().find(|f| f.name == "lumalloc_allocated_bytes").unwrap();
/// assert_eq!(allocated.help, "Bytes in blocks that the program holds.");
/// assert_eq!(allocated.keys, ["stats.allocated"]);
/// ```
#[derive(Debug)]
pub struct Family {
    /// The full name of the family.
    pub name: &'static str,
    /// How the numbers of the family change.
    pub kind: Kind,
    /// What the numbers of the family count.
    pub unit: Unit,
    /// The collector of the family, which says whether the family must be asked for.
    pub group: Group,
    /// One line of help for people.
    pub help: String,
    /// The names of the labels.
    pub labels: Vec<&'static str>,
    /// The keys of the namespace that the numbers come from.
    pub keys: Vec<&'static str>,
    pub(crate) source: &'static Source,
}

/// A function that makes samples which no key holds as they are.
pub(crate) type Make = fn(&mut Reader<'_>) -> Result<Vec<Sample>, Error>;

/// Where the numbers of a family come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The sum of some keys.
    Sum(&'static [&'static str]),
    /// A sum of keys for each value of a label.
    Each(&'static str, &'static [(&'static str, &'static [&'static str])]),
    /// A sum of keys for each arena, or for the arenas that share a label.
    Arena(&'static [&'static str]),
    /// A sum of keys for each class.
    Class(Classes, &'static [&'static str]),
    /// Texts by label.
    Texts(&'static [(&'static str, &'static str)]),
    /// Samples with these labels, which a function makes from these keys.
    Made(&'static [&'static str], Make, &'static [&'static str]),
    /// Numbers that the exporter knows itself, with these labels.
    Own(&'static [&'static str]),
}

/// A line of the table of families.
#[derive(Debug)]
pub(crate) struct Def {
    pub(crate) name: &'static str,
    kind: Kind,
    unit: Unit,
    group: Group,
    help: &'static str,
    source: Source,
}

pub(crate) const fn gauge(name: &'static str, unit: Unit, group: Group, source: Source) -> Def {
    Def { name, kind: Kind::Gauge, unit, group, help: "", source }
}

pub(crate) const fn counter(name: &'static str, unit: Unit, group: Group, source: Source) -> Def {
    Def { name, kind: Kind::Counter, unit, group, help: "", source }
}

pub(crate) const fn info(name: &'static str, group: Group, source: Source) -> Def {
    Def { name, kind: Kind::Info, unit: Unit::None, group, help: "", source }
}

pub(crate) const fn histogram(name: &'static str, unit: Unit, group: Group, source: Source) -> Def {
    Def { name, kind: Kind::Histogram, unit, group, help: "", source }
}

impl Def {
    /// Returns this line with its own help. Without it, the family has the help of its first key.
    pub(crate) const fn says(self, help: &'static str) -> Def {
        Def { name: self.name, kind: self.kind, unit: self.unit, group: self.group, help, ..self }
    }

    pub(super) fn family(&'static self) -> Family {
        let keys = self.source.keys();
        Family {
            name: self.name,
            kind: self.kind,
            unit: self.unit,
            group: self.group,
            help: if self.help.is_empty() { help(self.unit, &keys) } else { self.help.into() },
            labels: self.source.labels(self.group),
            keys: keys.into_iter().map(|key| fact(key).map_or(key, |row| row.name)).collect(),
            source: &self.source,
        }
    }
}

impl Source {
    /// Returns the keys as they are written in the table.
    fn keys(&self) -> Vec<&'static str> {
        match self {
            Source::Sum(keys) | Source::Arena(keys) | Source::Made(_, _, keys) => keys.to_vec(),
            Source::Class(classes, keys) => {
                let size = match classes {
                    Classes::Bins => Some("arenas.bin.0.size"),
                    Classes::Lextents => Some("arenas.lextent.0.size"),
                    Classes::Extents => None,
                };
                keys.iter().copied().chain(size).collect()
            }
            Source::Each(_, each) => each.iter().flat_map(|(_, keys)| *keys).copied().collect(),
            Source::Texts(texts) => texts.iter().map(|(_, key)| *key).collect(),
            Source::Own(_) => Vec::new(),
        }
    }

    fn labels(&self, group: Group) -> Vec<&'static str> {
        match self {
            Source::Sum(_) => Vec::new(),
            Source::Each(label, _) => vec![label],
            Source::Arena(_) if group == Group::Arenas => vec!["index"],
            Source::Arena(_) => vec!["arena"],
            Source::Class(classes, _) => vec![classes.label()],
            Source::Texts(texts) => texts.iter().map(|(label, _)| *label).collect(),
            Source::Made(labels, ..) | Source::Own(labels) => labels.to_vec(),
        }
    }
}

fn fact(key: &str) -> Option<&'static Fact> {
    row_of(&concrete(key))
}

/// Returns the help of the first key as a sentence.
fn help(unit: Unit, keys: &[&str]) -> String {
    let row = keys.first().and_then(|key| fact(key));
    let text = row.and_then(|row| row.help.to_str().ok()).unwrap_or_default();
    if unit == Unit::Bytes {
        return format!("Bytes {text}.");
    }
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}
