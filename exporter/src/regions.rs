//! The open regions of vmalloc(3), read by the names of the namespace, from any allocator.
use crate::namespace::{Namespace, Target};
use lumalloc_ctl::regions::Region;
use lumalloc_ctl::{Error, Value};

/// The most numbers of regions that are looked at.
const MOST: usize = 4096;

/// Returns all regions whose number is not too high.
pub(crate) fn read(namespace: &dyn Namespace) -> Result<Vec<Region>, Error> {
    let end = number(namespace.read(&namespace.find("vm.nregions")?)?);
    if end == 0 {
        return Ok(Vec::new());
    }
    let keys = Keys::of(namespace)?;
    Ok((0..end.min(MOST)).filter_map(|index| keys.region(index)).collect())
}

fn number(value: Value<'static>) -> usize {
    match value {
        Value::Size(number) => number,
        Value::Unsigned(number) => number as usize,
        _ => 0,
    }
}

/// The keys of a region, with 0 as its number.
struct Keys<'a> {
    namespace: &'a dyn Namespace,
    name: Target,
    file: Target,
    method: Target,
    discipline: Target,
    alive: Target,
    /// In the order of [`NUMBERS`].
    numbers: Vec<Target>,
}

const NUMBERS: [&str; 11] = [
    "flags", "address", "holder", "n_seg", "extent", "n_busy", "s_busy", "m_busy", "n_free",
    "s_free", "m_free",
];

impl Keys<'_> {
    fn of(namespace: &dyn Namespace) -> Result<Keys<'_>, Error> {
        let find = |leaf: &str| namespace.find(&format!("vm.region.0.{leaf}"));
        Ok(Keys {
            namespace,
            name: find("name")?,
            file: find("file")?,
            method: find("method")?,
            discipline: find("discipline")?,
            alive: find("holder_alive")?,
            numbers: NUMBERS.iter().map(|leaf| find(leaf)).collect::<Result<_, _>>()?,
        })
    }

    /// Returns a region, or `None` if none has this number.
    fn region(&self, index: usize) -> Option<Region> {
        let name = self.namespace.text(&self.name.with(2, index)).ok()?;
        let read = |key: &Target| self.namespace.read(&key.with(2, index)).ok();
        let text = |key| match read(key) {
            Some(Value::Str(text)) => text.to_string_lossy().into_owned(),
            _ => String::new(),
        };
        let numbers: Vec<usize> =
            self.numbers.iter().map(|key| read(key).map_or(0, number)).collect();
        let [flags, address, holder, n_seg, extent, busy @ .., n_free, s_free, m_free] =
            <[usize; 11]>::try_from(numbers).ok()?;
        let [n_busy, s_busy, m_busy] = busy;
        Some(Region {
            index,
            name,
            method: text(&self.method),
            discipline: text(&self.discipline),
            flags: u32::try_from(flags).unwrap_or_default(),
            address,
            file: self.namespace.text(&self.file.with(2, index)).ok(),
            n_busy,
            s_busy,
            m_busy,
            n_free,
            s_free,
            m_free,
            n_seg,
            extent,
            holder: u32::try_from(holder).unwrap_or_default(),
            holder_alive: read(&self.alive) != Some(Value::Bool(false)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;
    use lumalloc_ctl::Snapshot;
    use lumalloc_region::{Best, Heap, Region as OfRust};

    #[test]
    fn regions_are_what_the_allocator_says() {
        let region: OfRust<Best, Heap> = OfRust::open(Heap).unwrap();
        let region = region.publish("documents").unwrap();
        region.alloc(1000).unwrap();
        let ours = read(&Linked).unwrap();
        let mine =
            |all: &[Region]| all.iter().find(|one| one.index == region.number()).cloned().unwrap();
        let mine_now = mine(&ours);
        assert_eq!((mine_now.name.as_str(), mine_now.n_busy), ("documents", 1));
        assert_eq!((mine_now.method.as_str(), mine_now.discipline.as_str()), ("best", "heap"));
        assert_eq!(mine_now, mine(&Snapshot::take().regions));
    }
}
