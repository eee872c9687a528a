//! This build beside an old one, where both were measured.

use super::aligned;
use super::tables::with_noise;
use crate::cases::Case;
use crate::peers::{HARDENED, HARDENED_OLD, OLD, OURS};
use crate::results::{CPU, FAULTS, GROUPS, PEAK, WALL, mean, ratio};
use crate::store::Store;

/// The pairs of builds, with what a table of them is called.
const PAIRS: [(&str, (&str, &str)); 2] =
    [("this build", (OURS, OLD)), ("this build, hardened", (HARDENED, HARDENED_OLD))];

/// The ratios of this build to the old one, by group and by case. Empty if no old one was measured.
pub(super) fn section(store: &Store, cases: &[Case]) -> String {
    PAIRS.map(|(title, pair)| of_pair(store, cases, title, pair)).concat()
}

fn of_pair(store: &Store, cases: &[Case], title: &str, pair: (&str, &str)) -> String {
    let head = ["", "wall time", "user and system time", "peak RSS", "faults"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (group, name) in GROUPS {
        let of_group: Vec<Case> =
            cases.iter().copied().filter(|case| case.workload.group == group).collect();
        let means = [WALL, CPU, PEAK, FAULTS].map(|number| mean(store, &of_group, pair, number));
        if means.iter().any(Option::is_some) {
            let mut row = vec![format!("**{group}, {name}**")];
            let cell =
                |mean: Option<f64>| mean.map_or("–".to_owned(), |mean| format!("{mean:.3}"));
            row.extend(means.map(cell));
            rows.push(row);
        }
    }
    for &case in cases {
        let ratios = [WALL, CPU, PEAK, FAULTS].map(|number| ratio(store, case, pair, number));
        if ratios.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![case.workload.name.to_owned()];
        row.extend(ratios.map(|figure| figure.map_or("–".to_owned(), with_noise)));
        rows.push(row);
    }
    if rows.len() == 1 {
        return String::new();
    }
    format!("\n### Ratios of {title} to the old one\n\n{}", aligned(&rows))
}

#[cfg(test)]
mod tests {
    use super::section;
    use crate::cases::chosen;
    use crate::measure::Kind;
    use crate::peers::by_name;
    use crate::store::{Row, Store};

    #[test]
    fn groups_and_cases_are_compared_where_an_old_build_was_measured() {
        let cases = chosen(&["c/pair".to_owned(), "c/large".to_owned()]).unwrap();
        let mut store = Store::new(Kind::Ratios.columns(), Vec::new());
        let mut push = |peer: &str, times: [f64; 2]| {
            for (&case, ns) in cases.iter().zip(times) {
                let outcome = Ok(vec![ns, ns, 0.0, 1000.0, 10.0]);
                store.push(Row { case, peer: by_name(peer).unwrap(), round: 1, outcome });
            }
            section(&store, &cases)
        };
        assert_eq!(push("lumalloc", [3.0, 8.0]), "");
        let text = push("lumalloc-old", [2.0, 8.0]);
        assert!(text.starts_with("\n### Ratios of this build to the old one\n"), "{text}");
        assert!(text.contains("| **a, micro** | 1.500      | 1.500"), "{text}");
        assert!(text.contains("| pair         | 1.50 ±0.00 |"), "{text}");
        assert!(text.contains("| **c, large** | 1.000 "), "{text}");
    }
}
