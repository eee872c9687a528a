//! One reading of an allocator: all that is wanted, of one snapshot.
use super::arenas::{self, Arenas};
use super::family::{Classes, Family, Source, Unit, families};
use super::group::{Group, Groups};
use super::reader::{Names, Reader, text};
use super::sample::{Number, Sample};
use crate::namespace::Namespace;
use lumalloc_ctl::{Error, Value};
use std::time::{Duration, Instant};

/// So often a reading is made when others take snapshots meanwhile.
const TRIES: usize = 3;

/// What was read.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) samples: Vec<(&'static Family, Vec<Sample>)>,
    pub(crate) named: Option<Arenas>,
    pub(crate) each: Option<Arenas>,
    pub(crate) outcomes: Vec<Outcome>,
    /// How long the snapshot took.
    pub(crate) snapshot: Duration,
    /// Whether all is of one snapshot.
    pub(crate) consistent: bool,
}

/// How a collector fared.
pub(crate) struct Outcome {
    pub(crate) group: Group,
    pub(crate) error: Option<Error>,
    pub(crate) took: Duration,
}

/// Families of a collector that are read from the allocator, by their kind.
pub(crate) fn of(group: Group, is: fn(&Source) -> bool) -> Vec<&'static Family> {
    families().iter().filter(|family| family.group == group && is(family.source)).collect()
}

/// Families with a number for each arena.
pub(crate) fn by_arena(group: Group) -> Vec<&'static Family> {
    of(group, |source| matches!(source, Source::Arena(_)))
}

/// Reads what is wanted of one snapshot, which is taken now. A collector that fails leaves its
/// families out; the answer is an error when all failed.
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
        reading.consistent = namespace.read(&epoch)? == before;
        tries += 1;
        if reading.consistent || tries == TRIES {
            return reading.unless_nothing();
        }
    }
}

impl Reading {
    /// Reads one collector: all of it or nothing.
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

    /// The error of the first collector, when all failed.
    fn unless_nothing(self) -> Result<Reading, Error> {
        let all_failed = self.outcomes.iter().all(|outcome| outcome.error.is_some());
        let first = self.outcomes.first().and_then(|outcome| outcome.error);
        first.filter(|_| all_failed).map_or(Ok(self), Err)
    }
}

/// The samples of a family that is no arenas'.
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

/// A sample for each class; of large ones and of runs, for those with a number.
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
