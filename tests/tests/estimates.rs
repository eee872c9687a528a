//! How far the estimates of a sampled profile are from the truth, and whether their errors say so.

use lumalloc_tests::profiled::command;
use lumalloc_tests::{Run, cc, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The places of `profile_shares.c`: live blocks, and allocations.
const PLACES: [(&str, i64, i64); 8] = [
    ("most", 16_000, 16_000),
    ("some", 3000, 6000),
    ("few", 600, 600),
    ("longer", 1000, 4000),
    ("pages", 300, 300),
    ("single", 30, 30),
    ("large", 20, 60),
    ("larger", 20, 20),
];

/// A number and its error.
type Estimate = (f64, f64);

/// The live blocks and the allocations of each place, as the profile estimates them.
fn estimates(profile: &Path) -> BTreeMap<String, [Estimate; 2]> {
    let (status, json, notes) = command(
        profile.parent().expect("a directory"),
        &["heap", &profile.display().to_string(), "--json"],
    );
    assert_eq!((notes.as_str(), status.as_str()), ("", "exit 0"));
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let mut places: BTreeMap<String, [Estimate; 2]> = BTreeMap::new();
    for sample in report["samples"].as_array().expect("samples") {
        let stack = sample["stack"].as_u64().expect("a number") as usize;
        let frame = report["stacks"][stack][0].as_u64().expect("a frame") as usize;
        let name = report["frames"][frame]["function"].as_str().expect("a name").to_owned();
        let estimates = places.entry(name).or_default();
        for (place, kind) in estimates.iter_mut().zip(["live_blocks", "allocations"]) {
            place.0 += sample[kind].as_f64().expect("a number");
            place.1 += sample[format!("{kind}_error")].as_f64().expect("a number");
        }
    }
    places
}

/// Of what the profile shows, 95 % lies within two standard errors of the truth. The seeds are
/// fixed, so each run of this test finds nearly the same.
#[test]
fn estimates_of_200_runs_lie_within_their_errors() {
    let program = cc("profile_shares.c", &["-ldl"]);
    let file = scratch("profile-shares").join("shares.pb.gz");
    // How many estimates there were of each number, and how many were so near.
    let mut near: BTreeMap<(&str, usize), [u32; 2]> = BTreeMap::new();
    for seed in 1..=200 {
        let conf = format!("prof:true,lg_prof_sample:14,prof_seed:{seed}");
        assert_eq!(Run::preloaded(&program).args([&file]).conf(&conf).stdout(), "");
        let found = estimates(&file);
        for (name, live, allocated) in PLACES {
            let Some(estimates) = found.get(name) else { continue };
            for (at, truth) in [live, allocated].into_iter().enumerate() {
                let (estimate, error) = estimates[at];
                let is_near = (estimate - truth as f64).abs() <= 2.0 * error + 0.5;
                let [all, inside] = near.entry((name, at)).or_default();
                (*all, *inside) = (*all + 1, *inside + u32::from(is_near));
            }
        }
    }
    let (all, inside) =
        near.values().fold((0, 0), |sum, [all, inside]| (sum.0 + all, sum.1 + inside));
    assert!(all > 3000 && inside * 100 >= all * 95, "{inside} of {all}: {near:?}");
    assert!(near.values().all(|[all, inside]| inside * 100 >= all * 90), "{near:?}");
}
