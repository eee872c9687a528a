//! Turns what was read into what is served. Counters never go back, arenas keep their labels, and
//! the numbers that the exporter knows itself are added.
use super::arenas::{Arenas, MOST_NAMES};
use super::families::families;
use super::family::{Family, Source};
use super::group::{Group, Groups};
use super::kinds::Kind;
use super::monotone::Monotone;
use super::own;
use super::reader::Names;
use super::reading::{self, Outcome, Reading};
use super::residence::Residence;
use super::sample::{Histogram, Number, Sample};
use super::system;
use super::tracker::{Shown, Tracker};
use crate::counts;
use crate::namespace::Namespace;
use lumalloc_ctl::Error;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A family with its samples.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) family: &'static Family,
    pub(crate) samples: Vec<Sample>,
}

/// State that lasts from scrape to scrape.
pub(crate) struct Metrics(Mutex<State>);

struct State {
    names: Names,
    monotone: Monotone,
    named: Tracker,
    each: Tracker,
    residence: Residence,
    start: Option<f64>,
    scrapes: u64,
    cpu: Duration,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics(Mutex::new(State {
            names: Names::default(),
            monotone: Monotone::default(),
            named: Tracker::new(MOST_NAMES),
            // Every index already has its own label.
            each: Tracker::new(usize::MAX),
            residence: Residence::default(),
            start: None,
            scrapes: 0,
            cpu: Duration::ZERO,
        }))
    }
}

impl Metrics {
    /// Reads all families of the wanted collectors. `counts` are those of a server.
    ///
    /// # Errors
    /// Returns the error of the first collector if none of them could be read.
    pub(crate) fn gather(
        &self,
        namespace: &dyn Namespace,
        wanted: Groups,
        counts: Option<&counts::Snapshot>,
    ) -> Result<Vec<Served>, Error> {
        let begin = system::thread_cpu();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let served = state.gather(namespace, wanted, counts);
        state.scrapes += 1;
        state.cpu += system::thread_cpu().saturating_sub(begin);
        served
    }
}

impl State {
    fn gather(
        &mut self,
        namespace: &dyn Namespace,
        wanted: Groups,
        counts: Option<&counts::Snapshot>,
    ) -> Result<Vec<Served>, Error> {
        let asks = self.residence.is_due(Instant::now());
        let wanted = if asks { wanted } else { wanted.without(Group::Process) };
        let mut reading = reading::read(namespace, &mut self.names, wanted)?;
        self.keep_residence(&mut reading, asks);
        self.keep_start(&mut reading);
        let mut served: Vec<Served> = std::mem::take(&mut reading.samples)
            .into_iter()
            .map(|(family, samples)| Served { family, samples })
            .collect();
        let now = wall_clock();
        for (group, arenas) in
            [(Group::NamedArenas, reading.named.take()), (Group::Arenas, reading.each.take())]
        {
            if let Some(arenas) = arenas {
                served.extend(self.by_arena(group, &arenas, now));
            }
        }
        served.iter_mut().for_each(|one| settle(&mut self.monotone, one));
        let names: HashSet<&str> = served.iter().map(|one| one.family.name).collect();
        self.monotone.end_turn(|name| names.contains(name));
        served.extend(self.own(&reading, counts.unwrap_or(&counts::Snapshot::default())));
        served.retain(|one| !one.samples.is_empty());
        // The order of the table, in which families of one collector are neighbours.
        served.sort_by_key(|one| std::ptr::from_ref(one.family).addr());
        Ok(served)
    }

    /// Keeps the new answer of the system, or adds the last one if the system was not asked.
    fn keep_residence(&mut self, reading: &mut Reading, asked: bool) {
        let is_process = |family: &Family| family.group == Group::Process;
        if !asked {
            let error = system::resident().is_none().then_some(Error::Again);
            if error.is_none() {
                reading.samples.extend(self.residence.held());
            }
            let group = Group::Process;
            reading.outcomes.push(Outcome { group, error, took: Duration::ZERO });
            return;
        }
        let outcome = reading.outcomes.iter().find(|outcome| outcome.group == Group::Process);
        let Some(outcome) = outcome.filter(|outcome| outcome.error.is_none()) else { return };
        let samples = reading.samples.iter().filter(|(family, _)| is_process(family));
        self.residence.keep(samples.cloned().collect(), Instant::now(), outcome.took);
    }

    /// Keeps the start that was read first, because the clocks are not read at one instant.
    fn keep_start(&mut self, reading: &mut Reading) {
        let mut all = reading.samples.iter_mut();
        let start = all.find(|(family, _)| family.name == "lumalloc_start_time_seconds");
        if let Some((_, samples)) = start
            && let Some(Number::One(value)) = samples.first_mut().map(|sample| &mut sample.value)
        {
            *value = *self.start.get_or_insert(*value);
        }
    }

    /// Returns the families with a number for each arena.
    fn by_arena(&mut self, group: Group, arenas: &Arenas, now: f64) -> Vec<Served> {
        let families = reading::by_arena(group);
        let counts: Vec<bool> =
            families.iter().map(|family| family.kind == Kind::Counter).collect();
        let is_named = group == Group::NamedArenas;
        let labels = arenas.arenas.iter().map(|arena| {
            let label = if is_named { arena.label() } else { arena.place() };
            (label, arena)
        });
        let labels: Vec<_> = labels.collect();
        let tracker = if is_named { &mut self.named } else { &mut self.each };
        let shown = tracker.look(&labels, &counts, &arenas.destroyed, now);
        let label = if is_named { "arena" } else { "index" };
        families
            .into_iter()
            .enumerate()
            .map(|(at, family)| Served { family, samples: samples_of(&shown, at, label) })
            .collect()
    }

    /// Returns the families whose numbers the exporter knows itself.
    fn own(&self, reading: &Reading, counts: &counts::Snapshot) -> Vec<Served> {
        let all = families().iter().filter(|family| matches!(family.source, Source::Own(_)));
        let known = own::Known {
            reading,
            counts,
            scrapes: self.scrapes,
            cpu: self.cpu,
            overflow: self.named.overflow(),
            residence: self.residence.age(Instant::now()),
        };
        all.map(|family| Served { family, samples: known.samples(family) }).collect()
    }
}

fn wall_clock() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn samples_of(shown: &[Shown], at: usize, label: &'static str) -> Vec<Sample> {
    let samples = shown.iter().filter_map(|one| {
        let value = (*one.numbers.get(at)?)?;
        let created = one.created;
        Some(Sample { created, ..Sample::of(label, one.label.clone(), value) })
    });
    samples.collect()
}

/// Keeps counters from going back.
fn settle(monotone: &mut Monotone, served: &mut Served) {
    let Served { family, samples } = served;
    if !matches!(family.kind, Kind::Counter | Kind::Histogram) {
        return;
    }
    for sample in samples {
        let labels =
            sample.labels.iter().map(|(_, value)| value.as_ref()).collect::<Vec<_>>().join("\0");
        let resets = resets(family, &labels);
        match &mut sample.value {
            Number::One(value) => *value = monotone.settle(family.name, labels, *value, resets),
            Number::Many(Histogram { buckets, sum }) => {
                for (bound, count) in buckets {
                    let place = format!("{labels}\0le {bound}");
                    *count = monotone.settle(family.name, place, *count, false);
                }
                *sum = monotone.settle(family.name, format!("{labels}\0sum"), *sum, false);
            }
        }
    }
}

/// Whether `stats.mutexes.reset` sets the counts behind a sample to zero.
fn resets(family: &Family, label: &str) -> bool {
    let reset = |key: &&str| key.contains(".mutex");
    match family.source {
        Source::Each(_, each) => {
            let keys = each.iter().find(|(of, _)| *of == label).map(|(_, keys)| *keys);
            keys.is_some_and(|keys| keys.iter().any(reset))
        }
        _ => family.keys.iter().any(reset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_of_different_labels_are_settled_apart() {
        let family = families().iter().find(|family| family.kind == Kind::Histogram);
        let family = family.expect("a histogram");
        let histogram = |label: &'static str, count: f64| Sample {
            labels: vec![("of", label.into())],
            value: Number::Many(Histogram { buckets: vec![(8.0, count)], sum: count * 8.0 }),
            created: None,
        };
        let samples = vec![histogram("a", 9.0), histogram("b", 2.0)];
        let mut served = Served { family, samples: samples.clone() };
        settle(&mut Monotone::default(), &mut served);
        assert_eq!(served.samples, samples);
    }
}
