//! The sums of a whole profile, beside the exact ones of the allocator.

use crate::report::Report;
use crate::symbols::printable;
use crate::views::format::Bytes;
use crate::views::tally::{Tally, known};
use crate::views::value::Value;

/// Returns some lines that begin with `title`.
pub(crate) fn text(report: &Report, title: &str, bytes: Bytes) -> String {
    let profile = report.profile();
    let total = Tally::whole(profile);
    let mut lines = vec![printable(title.to_owned()), format!("  {}", how(report))];
    let mut sum = |label: &str, of: Value, blocks: Value, unit: &str| {
        let (of, count) = (number(&total, of, bytes), number(&total, blocks, bytes));
        let blocks = match blocks.is_in(profile) {
            true => format!("in {count} {unit}"),
            false => format!("(the file has no numbers of {unit})"),
        };
        lines.push(format!("  {label:<11}{of} {blocks}"));
    };
    sum("live", Value::LiveBytes, Value::LiveBlocks, "blocks");
    if profile.has_allocs {
        sum("allocated", Value::AllocatedBytes, Value::Allocations, "allocations");
    }
    let note = |name: &str| profile.comment(name).and_then(|text| text.parse::<i64>().ok());
    let exact = [
        ("stats.allocated", "allocated"),
        ("stats.active", "in active pages"),
        ("stats.resident", "resident"),
    ];
    let exact = exact.iter().filter_map(|(name, what)| {
        note(name).map(|number| format!("{} {what}", bytes.text(number)))
    });
    let exact: Vec<String> = exact.collect();
    if !exact.is_empty() {
        lines.push(format!("  {:<11}{} (exact, from the allocator)", "process", exact.join(", ")));
    }
    if let (Some(taken), Some(missed)) = (note("prof.samples.taken"), note("prof.samples.missed")) {
        lines.push(format!("  {:<11}{taken} taken, {missed} missed for lack of memory", "samples"));
    }
    lines.join("\n") + "\n"
}

/// How the numbers were made.
fn how(report: &Report) -> String {
    let profile = report.profile();
    let by = match (profile.comment("lumalloc"), profile.comment("pid")) {
        (Some(version), Some(pid)) => format!("lumalloc {version}, process {pid}: "),
        (Some(version), None) => format!("lumalloc {version}: "),
        _ => String::new(),
    };
    let by = printable(by);
    if profile.is_sampled() {
        let period = profile.period;
        let corrected = match profile.lacks_corrections {
            _ if profile.classes.is_empty() => "",
            true => "; corrected by exact counts, but not where these are too far from the samples",
            false => "; corrected by exact counts",
        };
        let error = match profile.lacks_sizes() {
            _ if profile.lacks_blocks => "one standard error at most",
            true => "one standard error at most, and ? for blocks, whose sizes the file lacks",
            false => "one standard error",
        };
        let behind = if profile.is_behind() {
            "; of the first allocations of threads after a reset, some had no chance to be a sample"
        } else {
            ""
        };
        format!(
            "{by}estimates from samples, one in {period} bytes; ± is {error}{corrected}{behind}"
        )
    } else {
        format!("{by}{}", profile.what_was_counted())
    }
}

fn number(total: &Tally, value: Value, bytes: Bytes) -> String {
    let text = |number: i64| match value.is_bytes() {
        true => bytes.text(number),
        false => number.to_string(),
    };
    let number = text(total.value(value));
    let error = total.error(value);
    match known(error) {
        Some(_) if error <= 0.0 => number,
        Some(error) => format!("{number} ± {}", text(error)),
        None => format!("{number} ± ?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Counts, Profile, Sample};
    use crate::read::testing::File;
    use crate::symbols::Search;

    #[test]
    fn the_title_controls_no_terminal() {
        let report = Report::new(File::default().read(), &Search::default());
        let text = text(&report, "x\u{1b}[2J.heap", Bytes::AllDigits);
        assert!(!text.contains('\u{1b}') && text.contains("[2J.heap"), "{text:?}");
    }

    #[test]
    fn how_the_numbers_were_made_is_said() {
        let how_of = |notes: &[&str], period| {
            let mut file = notes.iter().fold(File::default(), |file, note| file.comment(note));
            file.profile.period = period;
            let file = file.path("main > keep", 512, 1702, 851);
            how(&Report::new(file.read(), &Search::default()))
        };
        assert_eq!(how_of(&["prof.since_start=1"], 0), "each allocation was counted");
        let while_on = "each allocation while sampling was on, and after any reset, was counted";
        assert_eq!(how_of(&["prof.since_start=0"], 0), while_on);
        let sampled = "estimates from samples, one in 4096 bytes; ± is one standard error";
        let own = ["lumalloc=0.1.0", "pid=7"];
        assert_eq!(how_of(&own[..1], 4096), format!("lumalloc 0.1.0: {sampled}"));
        assert_eq!(how_of(&own, 4096), format!("lumalloc 0.1.0, process 7: {sampled}"));
        let counts = Counts { live: 3, live_bytes: 4096, ..Counts::default() };
        let sample = Sample { counts, ..Sample::default() };
        let profile = Profile { period: 1024, samples: vec![sample], ..Profile::default() };
        let report = Report::new(profile, &Search::default());
        let at_most = "estimates from samples, one in 1024 bytes; ± is one standard error at most, \
                       and ? for blocks, whose sizes the file lacks";
        assert_eq!(how(&report), at_most);
        let text = text(&report, "a", Bytes::WithUnits);
        assert!(text.ends_with("\n  live       4.00 KiB ± 2.00 KiB in 3 ± ? blocks\n"), "{text}");
        let profile = Profile { lacks_blocks: true, ..report.profile().clone() };
        let text = self::text(&Report::new(profile, &Search::default()), "a", Bytes::WithUnits);
        let lines = "a\n  estimates from samples, one in 1024 bytes; ± is one standard error at most\n  \
                     live       4.00 KiB ± 2.00 KiB (the file has no numbers of blocks)\n";
        assert_eq!(text, lines);
        let exact = ["prof.since_start=1", "class.512=900 1800"];
        let corrected = format!("{sampled}; corrected by exact counts");
        assert_eq!(how_of(&exact, 4096), corrected);
        let others = ["prof.since_start=1", "class.512=0 1800"];
        let partly = format!("{corrected}, but not where these are too far from the samples");
        assert_eq!(how_of(&others, 4096), partly);
        let behind = "; of the first allocations of threads after a reset, some had no chance to \
                      be a sample";
        assert_eq!(how_of(&["prof.behind=1"], 4096), format!("{sampled}{behind}"));
    }
}
