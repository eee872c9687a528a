//! One reading of an allocator: everything that is wanted, from one snapshot.
use super::arenas::{self, Arenas};
use super::families::families;
use super::family::{Family, Source};
use super::group::{Group, Groups};
use super::kinds::{Classes, Unit};
use super::reader::{Names, Reader, text};
use super::sample::{Number, Sample};
use super::system;
use crate::namespace::Namespace;
use lumalloc_ctl::{Error, Value};
use std::time::{Duration, Instant};

/// How often a reading is made at most, if others take snapshots during it, or arenas end.
const TRIES: usize = 3;

/// The result of a reading.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) samples: Vec<(&'static Family, Vec<Sample>)>,
    pub(crate) named: Option<Arenas>,
    pub(crate) each: Option<Arenas>,
    pub(crate) outcomes: Vec<Outcome>,
    /// How long the snapshot took.
    pub(crate) snapshot: Duration,
    /// Whether all numbers are of one snapshot, and none of it is missing.
    pub(crate) consistent: bool,
}

/// The outcome of a collector.
pub(crate) struct Outcome {
    pub(crate) group: Group,
    pub(crate) error: Option<Error>,
    pub(crate) took: Duration,
}

/// Returns the families of a collector whose source is of a kind.
pub(crate) fn of(group: Group, is: fn(&Source) -> bool) -> Vec<&'static Family> {
    families().iter().filter(|family| family.group == group && is(family.source)).collect()
}

/// Returns the families of a collector with a number for each arena.
pub(crate) fn by_arena(group: Group) -> Vec<&'static Family> {
    of(group, |source| matches!(source, Source::Arena(_)))
}

/// Takes a snapshot, and reads what is wanted of it. A collector that fails leaves its families
/// out. Returns an error if all collectors failed.
pub(crate) fn read(
    namespace: &dyn Namespace,
    names: &mut Names,
    wanted: Groups,
) -> Result<Reading, Error> {
    let epoch = namespace.find("epoch")?;
    let mut tries = 0;
    loop {
        let begin = Instant::now();
        namespace.write(&epoch, Value::U64(1))?;
        let before = namespace.read(&epoch)?;
        let mut reading = Reading { snapshot: begin.elapsed(), ..Reading::default() };
        for group in Group::ALL.into_iter().filter(|group| wanted.has(*group)) {
            reading.collect(group, &mut Reader::new(namespace, names));
        }
        let arenas = [&reading.named, &reading.each];
        let are_whole = arenas.into_iter().flatten().all(|arenas| arenas.is_whole);
        reading.consistent = are_whole && namespace.read(&epoch)? == before;
        tries += 1;
        if reading.consistent || tries == TRIES {
            return reading.unless_nothing();
        }
    }
}

impl Reading {
    /// Reads one collector, completely or not at all.
    fn collect(&mut self, group: Group, reader: &mut Reader<'_>) {
        let begin = Instant::now();
        let before = self.samples.len();
        let outcome = self.try_collect(group, reader);
        if outcome.is_err() {
            self.samples.truncate(before);
        }
        self.outcomes.push(Outcome { group, error: outcome.err(), took: begin.elapsed() });
    }

    fn try_collect(&mut self, group: Group, reader: &mut Reader<'_>) -> Result<(), Error> {
        // The allocator counts what it cannot read as 0.
        if group == Group::Process && system::resident().is_none() {
            return Err(Error::Again);
        }
        let plain = |source: &Source| !matches!(source, Source::Arena(_) | Source::Own(_));
        for family in of(group, plain) {
            self.samples.push((family, samples(reader, family)?));
        }
        match group {
            Group::NamedArenas => self.named = Some(arenas::read(reader, &by_arena(group))?),
            Group::Arenas => self.each = Some(arenas::read(reader, &by_arena(group))?),
            _ => {}
        }
        Ok(())
    }

    /// Returns the error of the first collector if all failed.
    fn unless_nothing(self) -> Result<Reading, Error> {
        let all_failed = self.outcomes.iter().all(|outcome| outcome.error.is_some());
        let first = self.outcomes.first().and_then(|outcome| outcome.error);
        first.filter(|_| all_failed).map_or(Ok(self), Err)
    }
}

/// Returns the samples of a family that is not by arena.
fn samples(reader: &mut Reader<'_>, family: &Family) -> Result<Vec<Sample>, Error> {
    match family.source {
        Source::Sum(keys) => Ok(vec![Sample::plain(reader.sum(keys, &[], family.unit)?)]),
        Source::Each(label, each) => each
            .iter()
            .map(|(of, keys)| Ok(Sample::of(label, *of, reader.sum(keys, &[], family.unit)?)))
            .collect(),
        Source::Class(classes, keys) => by_class(reader, *classes, keys, family.unit),
        Source::Texts(texts) => {
            let label = |(label, key): &(&'static str, &'static str)| {
                Ok((*label, text(reader.value(key, &[])?).into()))
            };
            let labels = texts.iter().map(label).collect::<Result<_, _>>()?;
            Ok(vec![Sample { labels, value: Number::One(1.0), created: None }])
        }
        Source::Made(_, make, _) => make(reader),
        Source::Arena(_) | Source::Own(_) => Ok(Vec::new()),
    }
}

/// Returns a sample for each class. Large classes and classes of runs are left out if they have 0.
fn by_class(
    reader: &mut Reader<'_>,
    classes: Classes,
    keys: &[&'static str],
    unit: Unit,
) -> Result<Vec<Sample>, Error> {
    let mut samples = Vec::new();
    for (at, size) in reader.sizes(classes)?.into_iter().enumerate() {
        let value = reader.sum(keys, &[at], unit)?;
        if value != 0.0 || classes == Classes::Bins {
            samples.push(Sample::of(classes.label(), (size as u64).to_string(), value));
        }
    }
    Ok(samples)
}
