//! Regions of vmalloc(3) by name. Those without a name share a label, and so do those for whose
//! name no label is left.
use super::arenas::OVERFLOW;
use super::reader::Reader;
use super::sample::Sample;
use lumalloc_ctl::Error;
use lumalloc_ctl::regions::Region;

/// The most labels of regions, [`UNNAMED`] and `overflow` among them.
const MOST_NAMES: usize = 64;
/// The label of regions without a name.
const UNNAMED: &str = "unnamed";

/// The sums of the regions that share a label, each made by one of these.
type Field = fn(&Region) -> usize;

/// Declares a function that makes samples of a field.
macro_rules! fields {
    ($($name:ident: $field:expr;)*) => {$(
        pub(super) fn $name(reader: &mut Reader<'_>) -> Result<Vec<Sample>, Error> {
            samples(reader, $field)
        }
    )*};
}

fields! {
    open: |_| 1;
    busy_blocks: |region| region.n_busy;
    busy_bytes: |region| region.s_busy;
    free_blocks: |region| region.n_free;
    free_bytes: |region| region.s_free;
    extent_bytes: |region| region.extent;
    segments: |region| region.n_seg;
    dead_holders: |region| usize::from(region.holder != 0 && !region.holder_alive);
}

fn samples(reader: &mut Reader<'_>, field: Field) -> Result<Vec<Sample>, Error> {
    let sums = by_label(reader.regions()?, field);
    Ok(sums.into_iter().map(|(label, sum)| Sample::of("region", label, sum as f64)).collect())
}

/// Sums a field by label. Names are taken in the order of the regions' numbers.
fn by_label(regions: &[Region], field: Field) -> Vec<(String, usize)> {
    let mut sums: Vec<(String, usize)> = Vec::new();
    for region in regions {
        let label = admitted(&sums, label(region));
        match sums.iter_mut().find(|(other, _)| *other == label) {
            Some((_, sum)) => *sum += field(region),
            None => sums.push((label.to_owned(), field(region))),
        }
    }
    sums
}

/// Returns a label, or [`OVERFLOW`] if it is new and none is left. Two are kept: this one, and
/// [`UNNAMED`].
fn admitted<'a>(sums: &[(String, usize)], wanted: &'a str) -> &'a str {
    let is_kept = |label: &str| label == UNNAMED || label == OVERFLOW;
    let taken = sums.iter().filter(|(label, _)| !is_kept(label)).count();
    let is_known = is_kept(wanted) || sums.iter().any(|(label, _)| label == wanted);
    if is_known || taken + 2 < MOST_NAMES { wanted } else { OVERFLOW }
}

/// Returns the label that a region wants.
fn label(region: &Region) -> &str {
    let number = region.name.strip_prefix("region_");
    let is_unnamed = number.is_some_and(|number| number.parse() == Ok(region.index));
    if is_unnamed { UNNAMED } else { &region.name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(index: usize, name: &str) -> Region {
        Region { index, name: name.into(), extent: 10, ..Region::default() }
    }

    #[test]
    fn regions_of_one_name_are_together() {
        let all = [
            named(0, "a"),
            named(1, "region_1"),
            named(2, "a"),
            named(3, "region_7"),
            named(4, "region_4"),
        ];
        let expected = [("a", 20), ("unnamed", 20), ("region_7", 10)];
        let expected = expected.map(|(label, sum)| (label.to_owned(), sum));
        assert_eq!(by_label(&all, |region| region.extent), expected);
    }

    #[test]
    fn labels_are_bounded() {
        let mut all: Vec<Region> = (0..100).map(|at| named(at, &format!("name {at}"))).collect();
        all.push(named(100, "region_100"));
        all.push(named(101, "name 3"));
        let sums = by_label(&all, |region| region.extent);
        assert_eq!(sums.len(), MOST_NAMES);
        assert_eq!(sums[3], ("name 3".into(), 20));
        assert_eq!(sums[61], ("name 61".into(), 10));
        assert_eq!(sums[62], ("overflow".into(), 380));
        assert_eq!(sums[63], ("unnamed".into(), 10));
    }
}
