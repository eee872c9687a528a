//! Reads keys by their names in the table. A name is looked up once. From then on its MIB is known.
use super::kinds::{Classes, Unit};
use crate::namespace::{Namespace, Target};
use lumalloc_ctl::regions::Region;
use lumalloc_ctl::{Error, Unit as KeyUnit, Value};
use std::collections::HashMap;

/// A key that was looked up, and the places of its indices.
#[derive(Clone, Copy)]
struct Known {
    target: Target,
    places: [Option<usize>; 2],
}

/// The names and sizes that were looked up in an allocator.
#[derive(Default)]
pub(crate) struct Names {
    /// Keys by the address and length of their name, which are shorter than the name and as good.
    known: HashMap<(usize, usize), Known>,
    /// Sizes of classes, which never change.
    sizes: HashMap<Classes, Vec<f64>>,
    page: Option<f64>,
}

/// Reads one allocator.
pub(crate) struct Reader<'a> {
    namespace: &'a dyn Namespace,
    names: &'a mut Names,
    /// Sizes of classes and requests for them, once they were read.
    pub(super) requests: Option<Vec<(f64, f64)>>,
    /// Regions, once they were read.
    regions: Option<Vec<Region>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(namespace: &'a dyn Namespace, names: &'a mut Names) -> Reader<'a> {
        Reader { namespace, names, requests: None, regions: None }
    }

    /// Reads the value of a key. The indices stand for its `<…>`.
    pub(crate) fn value(
        &mut self,
        key: &'static str,
        indices: &[usize],
    ) -> Result<Value<'static>, Error> {
        let target = self.target(key, indices)?;
        self.namespace.read(&target)
    }

    /// Reads a number in the unit of a family. "Never" is [`f64::INFINITY`].
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        indices: &[usize],
        unit: Unit,
    ) -> Result<f64, Error> {
        let target = self.target(key, indices)?;
        let number = number(self.namespace.read(&target)?).ok_or(Error::Invalid)?;
        Ok(match (target.row.unit, unit) {
            (KeyUnit::Milliseconds, _) if number < 0.0 => f64::INFINITY,
            (KeyUnit::Milliseconds, _) => number / 1e3,
            (KeyUnit::Nanoseconds, _) => number / 1e9,
            (KeyUnit::Count | KeyUnit::Pages, Unit::Bytes) => number * self.page()?,
            _ => number,
        })
    }

    /// Returns the sum of some keys.
    pub(crate) fn sum(
        &mut self,
        keys: &[&'static str],
        indices: &[usize],
        unit: Unit,
    ) -> Result<f64, Error> {
        keys.iter().try_fold(0.0, |sum, key| Ok(sum + self.number(key, indices, unit)?))
    }

    /// Reads a count of things to walk over.
    pub(crate) fn count(&mut self, key: &'static str) -> Result<usize, Error> {
        Ok(self.number(key, &[], Unit::None)? as usize)
    }

    /// Returns the name of an arena.
    pub(crate) fn arena_name(&mut self, index: usize) -> Result<String, Error> {
        self.namespace.arena_name(u32::try_from(index).map_err(|_| Error::NoEntry)?)
    }

    /// Returns all regions.
    pub(crate) fn regions(&mut self) -> Result<&[Region], Error> {
        let regions = match self.regions.take() {
            Some(regions) => regions,
            None => crate::regions::read(self.namespace)?,
        };
        Ok(self.regions.insert(regions))
    }

    /// Returns the sizes of all classes, or the numbers of classes that have no size.
    pub(crate) fn sizes(&mut self, classes: Classes) -> Result<Vec<f64>, Error> {
        if let Some(sizes) = self.names.sizes.get(&classes) {
            return Ok(sizes.clone());
        }
        let sizes: Vec<f64> = match classes {
            Classes::Bins => {
                let all = 0..self.count("arenas.nbins")?;
                all.map(|at| self.number("arenas.bin.<i>.size", &[at], Unit::None)).collect()
            }
            Classes::Lextents => {
                let all = 0..self.count("arenas.nlextents")?;
                all.map(|at| self.number("arenas.lextent.<i>.size", &[at], Unit::None)).collect()
            }
            Classes::Extents => Ok((0..self.runs()).map(|at| at as f64).collect()),
        }?;
        self.names.sizes.insert(classes, sizes.clone());
        Ok(sizes)
    }

    /// Returns how many classes of runs there are. No key says so, but an index beyond them has no
    /// entry.
    fn runs(&self) -> usize {
        let exists = |at: &usize| {
            self.namespace.find(&format!("stats.arenas.4096.extents.{at}.ndirty")).is_ok()
        };
        (0..1000).take_while(exists).count()
    }

    fn page(&mut self) -> Result<f64, Error> {
        if let Some(page) = self.names.page {
            return Ok(page);
        }
        let page = self.number("arenas.page", &[], Unit::Bytes)?;
        self.names.page = Some(page);
        Ok(page)
    }

    fn target(&mut self, key: &'static str, indices: &[usize]) -> Result<Target, Error> {
        let place = (key.as_ptr().addr(), key.len());
        let known = match self.names.known.get(&place) {
            Some(known) => *known,
            None => {
                let known = look_up(self.namespace, key)?;
                self.names.known.insert(place, known);
                known
            }
        };
        let places = known.places.iter().flatten().zip(indices);
        Ok(places.fold(known.target, |target, (place, index)| target.with(*place, *index)))
    }
}

/// Returns a key of the table with 0 for each `<…>`.
pub(super) fn concrete(key: &str) -> String {
    key.replace("<i>", "0").replace("<j>", "0")
}

/// Finds a key. Its `<…>` are 0 until they are set.
fn look_up(namespace: &dyn Namespace, key: &'static str) -> Result<Known, Error> {
    let target = namespace.find(&concrete(key))?;
    let mut places = [None; 2];
    let indices = key.split('.').enumerate().filter(|(_, part)| part.starts_with('<'));
    for (place, (at, _)) in places.iter_mut().zip(indices) {
        *place = Some(at);
    }
    Ok(Known { target, places })
}

/// Returns the number in a value. Flags are 0 and 1.
fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(value))),
        Value::Unsigned(value) | Value::U32(value) => Some(f64::from(value)),
        Value::U64(value) => Some(value as f64),
        Value::I64(value) => Some(value as f64),
        Value::Size(value) => Some(value as f64),
        Value::Ssize(value) => Some(value as f64),
        Value::Str(_) | Value::Pointer(_) => None,
    }
}

/// Returns a value as text.
pub(crate) fn text(value: Value<'_>) -> String {
    match value {
        Value::Str(text) => text.to_string_lossy().into_owned(),
        Value::Bool(value) => value.to_string(),
        other => number(other).map_or(String::new(), |number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;

    #[test]
    fn numbers_come_in_the_family_s_unit() {
        let mut names = Names::default();
        let mut reader = Reader::new(&Linked, &mut names);
        let size = reader.number("arenas.bin.<i>.size", &[1], Unit::Bytes);
        assert_eq!(size, Ok(16.0));
        assert_eq!(reader.number("arenas.bin.<i>.size", &[1000], Unit::Bytes), Err(Error::NoEntry));
        let pages = reader.number("stats.arenas.<i>.pactive", &[4096], Unit::None).unwrap();
        let bytes = reader.number("stats.arenas.4096.pactive", &[], Unit::Bytes).unwrap();
        assert_eq!(pages * 4096.0, bytes);
        let decay = reader.number("stats.arenas.<i>.dirty_decay_ms", &[4096], Unit::Seconds);
        assert_eq!(decay, Ok(f64::INFINITY), "-1 stands for ever");
        let spare = reader.number("arenas.page", &[7], Unit::Bytes);
        assert_eq!(spare, Ok(4096.0), "a key without indices takes none");
        assert_eq!(reader.number("nothing", &[], Unit::None), Err(Error::NoEntry));
        assert_eq!(reader.number("version", &[], Unit::None), Err(Error::Invalid));
        assert!(text(reader.value("version", &[]).unwrap()).contains('.'));
    }

    #[test]
    fn classes_have_sizes() {
        let mut names = Names::default();
        let mut reader = Reader::new(&Linked, &mut names);
        let bins = reader.sizes(Classes::Bins).unwrap();
        assert_eq!((bins[0], bins[bins.len() - 1]), (8.0, 32768.0));
        assert_eq!(reader.sizes(Classes::Lextents).unwrap()[0], 40960.0);
        let runs = reader.sizes(Classes::Extents).unwrap().len();
        assert!((100..1000).contains(&runs), "{runs}");
    }
}
