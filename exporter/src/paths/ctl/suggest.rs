//! Suggests the key that was meant by an unknown name.
use lumalloc_namespace::facts;

/// Returns the key whose name is nearest, with the given numbers. Returns `None` if none is near.
pub(super) fn nearest(name: &str) -> Option<String> {
    let given: Vec<&str> = name.split('.').collect();
    let plain = pattern(name);
    let distances = facts().iter().map(|row| (distance(&plain, &pattern(row.name)), row.name));
    let (distance, row) = distances.min_by_key(|&(distance, _)| distance)?;
    // A third of the letters may be wrong.
    (distance <= name.len().div_ceil(3)).then(|| with_numbers(row, &given))
}

/// Returns a name with `#` for each index, so that numbers do not count as letters.
fn pattern(name: &str) -> String {
    let is_index = |part: &str| {
        part.starts_with('<') || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let parts: Vec<&str> =
        name.split('.').map(|part| if is_index(part) { "#" } else { part }).collect();
    parts.join(".")
}

/// Returns a row's name with the numbers that another name has in the places of its indices.
fn with_numbers(row: &str, given: &[&str]) -> String {
    let part = |(place, part): (usize, &str)| match given.get(place) {
        Some(number) if part.starts_with('<') && pattern(number) == "#" => (*number).to_string(),
        _ => part.to_string(),
    };
    row.split('.').enumerate().map(part).collect::<Vec<_>>().join(".")
}

/// Returns how many letters must be added, left out or replaced to make one text of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, to) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *cell;
            left = replaced.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_apart() {
        for (a, b, apart) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), apart, "{a} {b}");
        }
    }

    #[test]
    fn what_was_meant() {
        for (name, meant) in [
            ("stats.alocated", Some("stats.allocated")),
            ("stats.arenas.12.bins.3.nmaloc", Some("stats.arenas.12.bins.3.nmalloc")),
            ("arena.7.dirty_decay", Some("arena.7.dirty_decay_ms")),
            ("arena.<i>.purgee", Some("arena.<i>.purge")),
            ("backgroundthread", Some("background_thread")),
            ("something.else.entirely", None),
            ("", None),
        ] {
            assert_eq!(nearest(name).as_deref(), meant, "{name}");
        }
    }
}
