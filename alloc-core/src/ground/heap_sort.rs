//! Sorts in place without a panic. The standard library's sort has one for orders that
//! contradict themselves.

/// Sorts a slice by heapsort.
///
/// ```
/// let mut numbers = [3, 1, 2];
/// lumalloc::sorting::heap_sort(&mut numbers);
/// assert_eq!(numbers, [1, 2, 3]);
/// ```
pub fn heap_sort<T: Copy + Ord>(items: &mut [T]) {
    for root in (0..items.len() / 2).rev() {
        sift_down(items, root);
    }
    for end in (1..items.len()).rev() {
        exchange(items, 0, end);
        sift_down(items.get_mut(..end).unwrap_or_default(), 0);
    }
}

/// Moves the item at `root` down, until it is not less than those below it.
fn sift_down<T: Copy + Ord>(items: &mut [T], mut root: usize) {
    loop {
        let (left, right) = (2 * root + 1, 2 * root + 2);
        let greater = if items.get(right) > items.get(left) { right } else { left };
        if greater >= items.len() || items.get(greater) <= items.get(root) {
            return;
        }
        exchange(items, root, greater);
        root = greater;
    }
}

fn exchange<T: Copy>(items: &mut [T], one: usize, other: usize) {
    if let (Some(first), Some(second)) = (items.get(one).copied(), items.get(other).copied()) {
        items.get_mut(one).into_iter().for_each(|item| *item = second);
        items.get_mut(other).into_iter().for_each(|item| *item = first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_are_sorted() {
        for length in 0..200usize {
            let mut items: Vec<usize> = (0..length).map(|n| n * 7919 % 101).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            heap_sort(&mut items);
            assert_eq!(items, expected);
        }
    }
}
