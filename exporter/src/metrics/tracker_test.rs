//! Arenas that are made, destroyed and renamed.
use super::*;

/// One gauge and one counter.
const COUNTS: [bool; 2] = [false, true];

fn arena(index: usize, born: i64, gauge: f64, count: f64) -> Arena {
    Arena { index, name: String::new(), born, age: 1.0, numbers: vec![gauge, count] }
}

/// Looks at arenas, and returns the label, the gauge and the count of each label.
fn look(
    tracker: &mut Tracker,
    arenas: &[(&str, Arena)],
    destroyed: f64,
) -> Vec<(String, Option<f64>, f64)> {
    let arenas: Vec<(String, &Arena)> =
        arenas.iter().map(|(label, arena)| (label.to_string(), arena)).collect();
    let shown = tracker.look(&arenas, &COUNTS, &[0.0, destroyed], 100.0);
    shown.into_iter().map(|one| (one.label, one.numbers[0], one.numbers[1].unwrap())).collect()
}

fn line(label: &str, gauge: Option<f64>, count: f64) -> (String, Option<f64>, f64) {
    (label.into(), gauge, count)
}

#[test]
fn arenas_that_share_a_label_are_summed() {
    let mut tracker = Tracker::new(64);
    let arenas = [
        ("auto", arena(0, 0, 1.0, 10.0)),
        ("auto", arena(1, 5, 2.0, 20.0)),
        ("tenant", arena(8, 9, 4.0, 40.0)),
    ];
    let expected = [
        line("auto", Some(3.0), 30.0),
        line("destroyed", None, 0.0),
        line("tenant", Some(4.0), 40.0),
    ];
    assert_eq!(look(&mut tracker, &arenas, 0.0), expected);
}

#[test]
fn what_a_destroyed_arena_counted_stays_with_its_label_and_is_counted_once() {
    let mut tracker = Tracker::new(64);
    look(&mut tracker, &[("t", arena(8, 1, 4.0, 40.0))], 0.0);
    // The arena counted 5 more, and was destroyed.
    let shown = look(&mut tracker, &[], 45.0);
    assert_eq!(shown, [line("destroyed", None, 5.0), line("t", None, 40.0)]);
    // Another arena of this name and index counted more than the first.
    let shown = look(&mut tracker, &[("t", arena(8, 7, 1.0, 60.0))], 45.0);
    assert_eq!(shown, [line("destroyed", None, 5.0), line("t", Some(1.0), 100.0)]);
}

#[test]
fn one_that_came_and_went_between_two_looks_is_counted_as_destroyed() {
    let mut tracker = Tracker::new(64);
    look(&mut tracker, &[], 0.0);
    assert_eq!(look(&mut tracker, &[], 7.0), [line("destroyed", None, 7.0)]);
}

#[test]
fn another_name_begins_at_what_was_counted_before() {
    let mut tracker = Tracker::new(64);
    look(&mut tracker, &[("manual", arena(8, 1, 4.0, 40.0))], 0.0);
    let shown = look(&mut tracker, &[("t", arena(8, 1, 4.0, 50.0))], 0.0);
    let expected =
        [line("destroyed", None, 0.0), line("manual", None, 40.0), line("t", Some(4.0), 10.0)];
    assert_eq!(shown, expected);
    let shown = look(&mut tracker, &[], 50.0);
    let expected =
        [line("destroyed", None, 0.0), line("manual", None, 40.0), line("t", None, 10.0)];
    assert_eq!(shown, expected, "all 50, none twice");
}

#[test]
fn beyond_the_most_labels_there_is_overflow_and_no_count_is_lost() {
    let mut tracker = Tracker::new(4);
    let mut arenas = vec![
        ("a", arena(1, 1, 1.0, 1.0)),
        ("b", arena(2, 2, 1.0, 1.0)),
        ("c", arena(3, 3, 1.0, 1.0)),
    ];
    let expected = [
        line("a", Some(1.0), 1.0),
        line("b", Some(1.0), 1.0),
        line("destroyed", None, 0.0),
        line("overflow", Some(1.0), 1.0),
    ];
    assert_eq!(look(&mut tracker, &arenas, 0.0), expected);
    assert_eq!(tracker.overflow(), 1);
    // `a` is destroyed and `d` is made. The sum is 12: the 1 of `a` stays.
    arenas.remove(0);
    arenas.push(("d", arena(4, 4, 1.0, 9.0)));
    let expected = [
        line("a", None, 1.0),
        line("b", Some(1.0), 1.0),
        line("destroyed", None, 0.0),
        line("overflow", Some(2.0), 10.0),
    ];
    assert_eq!(look(&mut tracker, &arenas, 1.0), expected);
    assert_eq!(tracker.overflow(), 2);
    // Another arena of the name `a` goes on where the first one ended.
    arenas.push(("a", arena(1, 5, 1.0, 2.0)));
    assert_eq!(look(&mut tracker, &arenas, 1.0)[0], line("a", Some(1.0), 3.0));
}

#[test]
fn a_count_of_a_new_arena_began_with_it() {
    let mut tracker = Tracker::new(64);
    let one = arena(8, 1, 4.0, 40.0);
    let shown = tracker.look(&[("t".into(), &one)], &COUNTS, &[0.0, 0.0], 100.0);
    assert_eq!(shown[1].created, Some(99.0));
    assert_eq!(shown[0].created, None);
}
