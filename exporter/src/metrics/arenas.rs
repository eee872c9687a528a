//! Arenas, read one by one.
use super::family::{Family, Source};
use super::kinds::Unit;
use super::reader::Reader;
use lumalloc_ctl::{Error, Value};

/// The most labels of arenas: names, `auto`, `manual`, `destroyed` and `overflow`.
pub(crate) const MOST_NAMES: usize = 64;
/// The most arenas that are shown by index. Those above share a label.
pub(crate) const MOST_INDICES: usize = 256;

/// The label of arenas for which there was no other label.
pub(crate) const OVERFLOW: &str = "overflow";

/// The index of all arenas together. Source: jemalloc(3), `MALLCTL_ARENAS_ALL`.
const ALL: usize = 4096;
/// A key that every arena has more than 0 of, and all arenas together the sum: an arena of the
/// snapshot that ends before it is read is missed by it.
const RESIDENT: &str = "stats.arenas.<i>.resident";

/// The index of the destroyed arenas. Source: jemalloc(3), `MALLCTL_ARENAS_DESTROYED`.
const GRAVE: usize = 4097;

/// The numbers of one arena, one for each family.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    pub(crate) index: usize,
    pub(crate) name: String,
    /// When the arena was made, relative to arena 0, in nanoseconds.
    pub(crate) born: i64,
    /// Seconds since the arena was made.
    pub(crate) age: f64,
    pub(crate) numbers: Vec<f64>,
}

/// All arenas, and the counts of destroyed arenas.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arenas {
    pub(crate) arenas: Vec<Arena>,
    pub(crate) destroyed: Vec<f64>,
    /// Whether no arena of the snapshot is missing.
    pub(crate) is_whole: bool,
}

/// Reads all arenas.
pub(crate) fn read(reader: &mut Reader<'_>, families: &[&Family]) -> Result<Arenas, Error> {
    let mut arenas = Vec::new();
    let mut resident = 0.0;
    for index in 0..reader.count("arenas.narenas")? {
        match read_one(reader, families, index) {
            Ok(Some((arena, of_arena))) => {
                arenas.push(arena);
                resident += of_arena;
            }
            // There is no arena with this index, or none any more.
            Ok(None) | Err(Error::NoEntry | Error::Fault) => {}
            Err(error) => return Err(error),
        }
    }
    // A key that destroyed arenas do not have, such as a gauge or a limit, counts as 0.
    let destroyed = families.iter().map(|family| numbers(reader, family, GRAVE));
    let destroyed = destroyed.map(|number| number.or_else(none_there)).collect::<Result<_, _>>()?;
    let is_whole = resident == reader.number(RESIDENT, &[ALL], Unit::Bytes)?;
    Ok(Arenas { arenas, destroyed, is_whole })
}

fn none_there(error: Error) -> Result<f64, Error> {
    if matches!(error, Error::NoEntry | Error::Fault) { Ok(0.0) } else { Err(error) }
}

fn uptime(reader: &mut Reader<'_>, index: usize) -> Result<i64, Error> {
    match reader.value("stats.arenas.<i>.uptime", &[index])? {
        Value::U64(nanoseconds) => Ok(nanoseconds as i64),
        _ => Err(Error::Invalid),
    }
}

/// How often two ages of one snapshot are read at most, while others take snapshots too.
const TRIES: usize = 100;

/// Returns the ages of arena 0 and of another arena, both from one snapshot. With two snapshots,
/// the difference would vary each time, and the arena would be taken for a new one.
fn ages(reader: &mut Reader<'_>, index: usize) -> Result<(i64, i64), Error> {
    let mut first = uptime(reader, 0)?;
    let mut age = uptime(reader, index)?;
    for _ in 0..TRIES {
        let again = uptime(reader, 0)?;
        if again == first {
            break;
        }
        (first, age) = (again, uptime(reader, index)?);
    }
    Ok((first, age))
}

/// Reads one arena, and its resident bytes. Returns `None` if it was made after the snapshot.
fn read_one(
    reader: &mut Reader<'_>,
    families: &[&Family],
    index: usize,
) -> Result<Option<(Arena, f64)>, Error> {
    let (first, uptime) = ages(reader, index)?;
    if uptime == 0 {
        return Ok(None);
    }
    let numbers = families.iter().map(|family| numbers(reader, family, index));
    let numbers = numbers.collect::<Result<_, _>>()?;
    let resident = reader.number(RESIDENT, &[index], Unit::Bytes)?;
    let name = reader.arena_name(index)?;
    let arena = Arena { index, name, born: first - uptime, age: uptime as f64 / 1e9, numbers };
    Ok(Some((arena, resident)))
}

fn numbers(reader: &mut Reader<'_>, family: &Family, index: usize) -> Result<f64, Error> {
    let Source::Arena(keys) = family.source else { return Err(Error::Invalid) };
    let number = reader.sum(keys, &[index], family.unit)?;
    let is_no_limit = keys.contains(&"arena.<i>.limit") && number == 0.0;
    Ok(if is_no_limit { f64::INFINITY } else { number })
}

impl Arena {
    /// Returns the label by name. Arenas that were given no name share a label.
    pub(crate) fn label(&self) -> String {
        let is = |prefix: &str| {
            self.name.strip_prefix(prefix).is_some_and(|number| number.parse() == Ok(self.index))
        };
        if is("auto_") {
            "auto".into()
        } else if is("manual_") {
            "manual".into()
        } else {
            self.name.clone()
        }
    }

    /// Returns the label by index.
    pub(crate) fn place(&self) -> String {
        if self.index < MOST_INDICES { self.index.to_string() } else { OVERFLOW.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arenas_that_nobody_named_are_together() {
        let label = |index, name: &str| {
            let numbers = Vec::new();
            Arena { index, name: name.into(), born: 0, age: 0.0, numbers }.label()
        };
        assert_eq!(label(3, "auto_3"), "auto");
        assert_eq!(label(12, "manual_12"), "manual");
        assert_eq!(label(12, "manual_13"), "manual_13", "somebody named it so");
        assert_eq!(label(12, "a tenant"), "a tenant");
    }
}
