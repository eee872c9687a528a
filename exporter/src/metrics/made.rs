//! Samples that are computed, because no key holds them as they are.
use super::kinds::{Classes, Unit};
use super::reader::{Reader, text};
use super::sample::{Histogram, Number, Sample};
use lumalloc_ctl::Error;
use std::time::SystemTime;

type Made = Result<Vec<Sample>, Error>;

/// Upper bounds of the sizes. The last bucket has no bound.
pub(crate) const BOUNDS: [f64; 19] = {
    let lg = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 30];
    let mut bounds = [0.0; 19];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = (1u64 << lg[at]) as f64;
        at += 1;
    }
    bounds
};

fn one(value: f64) -> Made {
    Ok(vec![Sample::plain(value)])
}

/// Returns 1 if `config.ignored` holds any text.
pub(super) fn has_ignored(reader: &mut Reader<'_>) -> Made {
    let ignored = text(reader.value("config.ignored", &[])?);
    one(f64::from(u8::from(!ignored.is_empty())))
}

/// Returns when arena 0 was made. [`super::settle`] keeps the first result.
pub(super) fn start_time(reader: &mut Reader<'_>) -> Made {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let age = reader.number("stats.arenas.<i>.uptime", &[0], Unit::Seconds)?;
    one(now.as_secs_f64() - age)
}

/// Returns a limit. 0, and a number beyond any memory, mean no limit.
fn limit(reader: &mut Reader<'_>, key: &'static str) -> Result<f64, Error> {
    let bytes = reader.number(key, &[], Unit::Bytes)?;
    let is_limit = bytes > 0.0 && bytes < (1u64 << 56) as f64;
    Ok(if is_limit { bytes } else { f64::INFINITY })
}

pub(super) fn soft_limit(reader: &mut Reader<'_>) -> Made {
    one(limit(reader, "limit.soft")?)
}

pub(super) fn hard_limit(reader: &mut Reader<'_>) -> Made {
    one(limit(reader, "limit.hard")?)
}

pub(super) fn fills(reader: &mut Reader<'_>) -> Made {
    let keys = [
        ("junk_allocated", "fill.junk_allocated"),
        ("junk_freed", "fill.junk_freed"),
        ("zero", "fill.zero"),
    ];
    keys.into_iter()
        .map(|(fill, key)| Ok(Sample::of("fill", fill, reader.number(key, &[], Unit::None)?)))
        .collect()
}

/// Returns the requests so far, without the blocks that the program holds.
pub(super) fn deallocations(reader: &mut Reader<'_>) -> Made {
    let keys = ["stats.arenas.4096.small.nrequests", "stats.arenas.4096.large.nrequests"];
    let requests = reader.sum(&keys, &[], Unit::None)?;
    one((requests - reader.number("vm.stat.n_busy", &[], Unit::None)?).max(0.0))
}

/// Returns the sizes of classes, and the requests for them.
fn requests(reader: &mut Reader<'_>) -> Result<Vec<(f64, f64)>, Error> {
    if let Some(requests) = &reader.requests {
        return Ok(requests.clone());
    }
    let keys = [
        (Classes::Bins, "stats.arenas.4096.bins.<j>.nrequests"),
        (Classes::Lextents, "stats.arenas.4096.lextents.<j>.nrequests"),
    ];
    let mut requests = Vec::new();
    for (classes, key) in keys {
        for (at, size) in reader.sizes(classes)?.into_iter().enumerate() {
            requests.push((size, reader.number(key, &[at], Unit::None)?));
        }
    }
    reader.requests = Some(requests.clone());
    Ok(requests)
}

/// Returns the requests by size.
pub(super) fn sizes(reader: &mut Reader<'_>) -> Made {
    let mut buckets: Vec<(f64, f64)> = BOUNDS.iter().map(|bound| (*bound, 0.0)).collect();
    buckets.push((f64::INFINITY, 0.0));
    let mut sum = 0.0;
    for (size, count) in requests(reader)? {
        sum += size * count;
        if let Some((_, bucket)) = buckets.iter_mut().find(|(bound, _)| size <= *bound) {
            *bucket += count;
        }
    }
    let value = Number::Many(Histogram { buckets, sum });
    Ok(vec![Sample { labels: Vec::new(), value, created: None }])
}

/// Returns the bytes of all requests so far, without the bytes that the program holds.
pub(super) fn deallocated_bytes(reader: &mut Reader<'_>) -> Made {
    let all: f64 = requests(reader)?.into_iter().map(|(size, count)| size * count).sum();
    one((all - reader.number("stats.allocated", &[], Unit::Bytes)?).max(0.0))
}

/// Returns the time slept, by rank. The locks of bins have a key for each class, and are added up.
pub(super) fn lock_waits(reader: &mut Reader<'_>) -> Made {
    let ranks = [
        ("background", "stats.mutexes.background_thread.total_wait_time"),
        ("decay_pass", "stats.mutexes.max_per_bg_thd.total_wait_time"),
        ("registry", "stats.mutexes.thread_caches.total_wait_time"),
        ("cache", "stats.arenas.4096.mutexes.tcache_list.total_wait_time"),
        ("arenas", "stats.mutexes.arenas.total_wait_time"),
        ("bin", "stats.arenas.4096.bins.<j>.mutex.total_wait_time"),
        ("pages", "stats.arenas.4096.mutexes.extents_dirty.total_wait_time"),
        ("metadata", "stats.arenas.4096.mutexes.base.total_wait_time"),
        ("namespace", "stats.mutexes.ctl.total_wait_time"),
    ];
    let bins = reader.sizes(Classes::Bins)?.len();
    let mut samples = Vec::new();
    for (rank, key) in ranks {
        let locks = if rank == "bin" { bins } else { 1 };
        let mut waited = 0.0;
        for lock in 0..locks {
            waited += reader.number(key, &[lock], Unit::Seconds)?;
        }
        samples.push(Sample::of("rank", rank, waited));
    }
    Ok(samples)
}

/// Returns the name of each arena, and its use of the data segment.
pub(super) fn arena_infos(reader: &mut Reader<'_>) -> Made {
    let mut samples = Vec::new();
    for index in 0..reader.count("arenas.narenas")?.min(super::arenas::MOST_INDICES) {
        let dss = match reader.value("stats.arenas.<i>.dss", &[index]) {
            Ok(dss) => text(dss),
            // There is no such arena, or none any more.
            Err(Error::NoEntry | Error::Fault) => continue,
            Err(error) => return Err(error),
        };
        let Ok(name) = reader.arena_name(index) else { continue };
        let labels =
            vec![("index", index.to_string().into()), ("arena", name.into()), ("dss", dss.into())];
        samples.push(Sample { labels, value: Number::One(1.0), created: None });
    }
    Ok(samples)
}
