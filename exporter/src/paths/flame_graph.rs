//! `/flamegraph`: the heap profile of this moment as a picture, as folded stacks, or as
//! JSON with all values: by stack, and by the program's functions that allocated.
//!
//! Functions have the names of the symbol tables, without those that were inlined. With
//! `lines=true` the debug information is read, for inlined functions and, in folded stacks, lines
//! of the source.
use crate::answer::{Answer, JSON, TEXT, body, line, no_memory};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::{bad, only};
use crate::heap_profile::{Format, take};
use crate::lines;
use crate::query;
use crate::symbols::{self, Place, Symbols};
use hyper::StatusCode;
use lumalloc_report::profile::{Line, Profile};
use lumalloc_report::symbols::Search;
use lumalloc_report::views::{Shown, Value, folded, sites, stacks};
use lumalloc_report::{Report, flame_graph, read};
use serde_json::{Value as Json, json};
use std::path::Path;

/// The media type of a picture.
const SVG: &str = "image/svg+xml";
/// Bytes that may be needed for each byte of the profile.
const TIMES: usize = 64;
/// What widths may stand for.
const VALUES: [(&str, Value); 4] = [
    ("live-bytes", Value::LiveBytes),
    ("live-blocks", Value::LiveBlocks),
    ("allocated-bytes", Value::AllocatedBytes),
    ("allocations", Value::Allocations),
];

/// Answers `GET /flamegraph`.
pub(crate) fn flamegraph(context: &Context, asked: &Asked) -> Answer {
    if let Err(bad) = only(asked, &["format", "value", "lines"]) {
        return bad.into();
    }
    let word = |name| query::values(asked.uri().query(), name).next();
    let value = word("value").unwrap_or_else(|| VALUES[0].0.into());
    let Some((_, value)) = VALUES.iter().find(|(name, _)| *name == value) else {
        let names = VALUES.map(|(name, _)| name).join(", ");
        return bad(format_args!("value is one of {names}, not {value:?}")).into();
    };
    let format = word("format").unwrap_or_else(|| "svg".into());
    if !["svg", "collapsed", "json"].contains(&format.as_str()) {
        return bad(format_args!("format is svg, collapsed or json, not {format:?}")).into();
    }
    let has_lines = match lines::are_wanted(asked) {
        Ok(are_wanted) => are_wanted,
        Err(bad) => return bad.into(),
    };
    let file = match take(context.namespace, Format::Pprof) {
        Ok(file) => file,
        Err(failure) => return failure.into(),
    };
    let names = if has_lines { lines::bytes() } else { symbols::bytes() };
    if !context.memory.has_for(file.len().saturating_mul(TIMES).saturating_add(names)) {
        return no_memory();
    }
    let report = match named(&file, has_lines) {
        Ok(report) => report,
        Err(reason) => return line(StatusCode::INTERNAL_SERVER_ERROR, reason),
    };
    let shown = if has_lines { Shown::Places } else { Shown::Functions };
    match format.as_str() {
        "svg" => body(SVG, flame_graph(&report, &program(), *value)),
        "json" => body(JSON, numbers(&report, shown).to_string()),
        _ => body(TEXT, folded(&report, *value, shown)),
    }
}

/// All values of all stacks, and of the functions that allocated.
fn numbers(report: &Report, shown: Shown) -> Json {
    let of = |(name, value): (&str, Value)| {
        let stacks = stacks(report, value, shown);
        (name.to_owned(), json!({ "stacks": stacks, "sites": sites(report, value) }))
    };
    Json::Object(VALUES.into_iter().map(of).collect())
}

/// Reads a profile of this process, and names its functions.
fn named(file: &[u8], has_lines: bool) -> Result<Report, String> {
    let mut profile = read(file)?;
    if has_lines {
        return Ok(Report::new(profile, &Search::default()));
    }
    name_all(&mut profile, Symbols::of_process().unwrap_or_default());
    Ok(Report::new(profile, &Search::default()))
}

/// Names each location, so that no file is looked into again.
fn name_all(profile: &mut Profile, mut symbols: Symbols) {
    for location in &mut profile.locations {
        let function = name(&mut symbols, location.address);
        location.lines = vec![Line { function, ..Line::default() }];
    }
}

/// Returns the name of the function that contains an address. Without one it is the file and the
/// address in it, which is the same in every process and which `addr2line -e FILE` takes.
fn name(symbols: &mut Symbols, address: u64) -> String {
    match symbols.place(address) {
        Some(Place { name: Some(name), .. }) => name.to_owned(),
        Some(Place { path, address: Some(inside), .. }) => {
            format!("{}+{inside:#x}", file_name(Path::new(path)))
        }
        _ => format!("{address:#x}"),
    }
}

fn program() -> String {
    file_name(&std::env::current_exe().unwrap_or_default())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, get, said};

    #[test]
    fn wrong_parameters_are_refused() {
        let said =
            |query: &str| said(flamegraph(&context(), &get(&format!("/flamegraph?{query}"))));
        let text = "format is svg, collapsed or json, not \"png\"\n";
        assert_eq!(said("format=png"), (400, text.into()));
        let text = "value is one of live-bytes, live-blocks, allocated-bytes, allocations, \
                    not \"bytes\"\n";
        assert_eq!(said("value=bytes"), (400, text.into()));
        let text = "lines is true or false, not \"1\"\n";
        assert_eq!(said("lines=1"), (400, text.into()));
        let text = "no such parameter: \"x\"; there are: format, value, lines\n";
        assert_eq!(said("x"), (400, text.into()));
        let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
        assert_eq!(said("value=allocations"), (404, off.into()));
    }

    #[test]
    fn what_has_no_name_has_its_place_in_the_file() {
        // A program without symbols of its own.
        let maps = b"1000-2000 r-xp 00000000 fe:00 1 /usr/bin/true\n";
        let mut symbols = Symbols::of_maps(maps);
        assert_eq!(name(&mut symbols, 0x1010), "true+0x10");
        assert_eq!(name(&mut symbols, 0x2000), "0x2000");
    }

    #[test]
    fn what_is_in_no_file_has_its_address() {
        let mut profile = Profile::default();
        profile.locations.resize_with(2, Default::default);
        profile.locations[0].address = 0x10;
        profile.locations[1].address = (libc::getpid as *const ()).addr() as u64;
        name_all(&mut profile, Symbols::of_process().unwrap());
        assert_eq!(profile.locations[0].lines[0].function, "0x10");
        assert!(profile.locations[1].lines[0].function.contains("getpid"));
    }
}
