//! A service with bursts under each allocator: what it holds in the quiet time after them, and how
//! long its events take. The program is `benches/service/src/bin/bursts`.
//!
//! ```text
//! ways (peers and settings) -> round (one process for each way, watched) -> report, picture
//! ```
//! `bursts [--rounds N] [--peers A,B] [--scale PERCENT]` writes `results/bursts.md`, `.csv` and
//! `.svg`. `bursts options [--rounds N]` compares options of lumalloc with each other and writes
//! `results/bursts-options.md` and `.csv`.

mod picture;
mod process;
mod report;
mod round;
mod watch;
mod ways;

use crate::commands::cargo_build;
use crate::machine;
use crate::options::{self, Options};
use crate::peers::OURS;
use crate::places::Places;
use crate::prepare;
use crate::programs::contenders;
use crate::progress::progress;
use report::Series;
use round::Stage;
use std::fs;
use ways::{ALONE, BESIDE_PEERS, Settings};

/// The events of a burst at full scale.
const EVENTS: u32 = 1500;

/// `lumalloc-bench -- bursts [OPTIONS]`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (asked, options) = asked(arguments)?;
    if options.merge || !options.only.is_empty() {
        return Err("bursts has one case: it takes neither --only nor --merge".to_owned());
    }
    let places = Places::find()?;
    let launch = prepare::programs(&places)?.launch;
    let contenders = contenders(&places, &options)?;
    progress("building the service");
    let target = places.built("service");
    cargo_build(&places.benches("service/Cargo.toml"), &target, &["--bin", "bursts"])?;
    let stage = Stage {
        launch: &launch,
        program: &target.join("release/bursts"),
        events: EVENTS * options.scale / 100,
    };
    let ways = ways::of(&contenders, asked.settings);
    let mut series: Vec<Series> = ways.iter().map(|way| Series::new(way.clone())).collect();
    for number in 0..options.rounds {
        let which = format!("round {}/{}", number + 1, options.rounds);
        let runs = round::all(&stage, &ways, number, &|text| progress(&format!("{which}: {text}")));
        series.iter_mut().zip(runs).for_each(|(one, run)| one.add(run));
    }
    progress("");
    let facts = machine::facts(&contenders, &options.as_given.join(" "));
    write(&places, (asked, &options), (&series, &facts))
}

/// What is compared.
#[derive(Clone, Copy)]
struct Asked {
    /// The beginning of the names of the files.
    name: &'static str,
    settings: Settings,
    has_picture: bool,
}

const PEERS: Asked = Asked { name: "bursts", settings: BESIDE_PEERS, has_picture: true };
const OPTIONS: Asked = Asked { name: "bursts-options", settings: ALONE, has_picture: false };

/// Reads the arguments.
fn asked(arguments: &[String]) -> Result<(Asked, Options), String> {
    if let Some((first, rest)) = arguments.split_first()
        && first == "options"
    {
        let mut options = options::parse("bursts options", rest)?;
        options.peers.retain(|peer| peer.name == OURS);
        if options.peers.is_empty() {
            return Err(format!("the options are those of {OURS}"));
        }
        return Ok((OPTIONS, options));
    }
    Ok((PEERS, options::parse("bursts", arguments)?))
}

/// Prints the report and writes it, with the picture and the numbers of all rounds.
fn write(
    places: &Places,
    (asked, options): (Asked, &Options),
    (series, facts): (&[Series], &[(String, String)]),
) -> Result<(), String> {
    let picture = asked.has_picture.then_some("bursts.svg");
    let text = report::markdown(series, facts, picture);
    println!("{text}");
    let out = options.out.clone().unwrap_or_else(|| places.benches("results"));
    fs::create_dir_all(&out).map_err(|error| format!("the directory of results: {error}"))?;
    let name = asked.name;
    let tables = [(format!("{name}.md"), text), (format!("{name}.csv"), report::csv(series))];
    let drawn = picture.map(|file| (file.to_owned(), picture::draw(series)));
    for (file, text) in tables.into_iter().chain(drawn) {
        fs::write(out.join(&file), text).map_err(|error| format!("{file}: {error}"))?;
    }
    let failed = series.iter().filter(|one| one.outcome.is_err()).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} series failed, see the report")) }
}

#[cfg(test)]
mod tests {
    use super::asked;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_are_compared_under_lumalloc_alone() {
        let (what, options) = asked(&words("options --rounds 3")).unwrap();
        assert_eq!((what.name, options.rounds), ("bursts-options", 3));
        let names: Vec<&str> = options.peers.iter().map(|peer| peer.name).collect();
        assert_eq!(names, ["lumalloc"]);
        let (what, options) = asked(&words("--peers lumalloc,glibc")).unwrap();
        assert_eq!((what.name, options.peers.len()), ("bursts", 2));
        assert!(asked(&words("settings")).is_err());
        assert!(asked(&words("options --peers glibc")).is_err());
    }
}
