//! The last samples of the heap profiler as JSON. Source: jemalloc,
//! `experimental.prof_recent.alloc_dump`.
//!
//! ```text
//! {"sample_interval":524288,"recent_alloc_max":2,"recent_alloc":[
//! {"size":100,"usize":112,"released":true,"alloc_thread_uid":1,"alloc_time":5,
//! "alloc_trace":["0x55d0c1a2f3b4"],"dalloc_thread_uid":1,"dalloc_time":9,
//! "dalloc_trace":["0x55d0c1a2f3c8"]}]}
//! ```
//! Times are nanoseconds of the monotonic clock. A sample that was not freed has no `dalloc`
//! fields.

use crate::json;
use crate::sink::{Sink, Text};
use lumalloc::control::profile;
use lumalloc::observe::{self, PastSample};

/// Writes the last samples. Returns `false`, and writes nothing, if another thread does the same.
pub fn write(sink: &mut dyn Sink) -> bool {
    // The head is shorter than what the text collects before it reaches the sink.
    let mut text = Text::new(sink);
    let most = profile::recent_samples();
    let interval = 1u64.checked_shl(observe::lg_profile_sample()).unwrap_or(0);
    text.bytes(b"{\"sample_interval\":").decimal(interval);
    text.bytes(b",\"recent_alloc_max\":").bytes(if most < 0 { b"-" } else { b"" });
    text.decimal(most.unsigned_abs() as u64).bytes(b",\"recent_alloc\":[");
    let mut between: &[u8] = b"\n";
    let is_written = observe::recent_samples(|sample| {
        text.bytes(between);
        one(&mut text, &sample);
        between = b",\n";
    });
    if !is_written {
        return false;
    }
    text.bytes(b"]}\n");
    text.end()
}

fn one(text: &mut Text<'_>, sample: &PastSample) {
    text.bytes(b"{\"size\":").decimal(sample.requested as u64);
    text.bytes(b",\"usize\":").decimal(sample.usable as u64);
    let released: &[u8] = if sample.freed.is_some() { b"true" } else { b"false" };
    text.bytes(b",\"released\":").bytes(released);
    json::moment(text, b"alloc", &sample.allocated);
    if let Some(freed) = &sample.freed {
        json::moment(text, b"dalloc", freed);
    }
    text.bytes(b"}");
}
