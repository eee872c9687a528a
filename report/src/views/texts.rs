//! Texts that many rows have, each once.

use std::collections::HashMap;
use std::rc::Rc;

/// Texts, by numbers that are given as they come.
#[derive(Default)]
pub(crate) struct Texts {
    all: Vec<Rc<str>>,
    numbers: HashMap<Rc<str>, u32>,
}

/// All texts in order.
pub(crate) struct Ordered {
    texts: Vec<Rc<str>>,
    /// The place of each number.
    places: Vec<u32>,
}

impl Texts {
    /// The number of a text.
    pub(crate) fn number(&mut self, text: String) -> u32 {
        if let Some(known) = self.numbers.get(text.as_str()) {
            return *known;
        }
        let (text, number): (Rc<str>, _) = (text.into(), self.all.len() as u32);
        self.all.push(Rc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// Puts them in order.
    pub(crate) fn ordered(self) -> Ordered {
        let mut order: Vec<u32> = (0..self.all.len() as u32).collect();
        order.sort_unstable_by_key(|number| &self.all[*number as usize]);
        let mut places = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number as usize] = place as u32;
        }
        let texts = order.iter().map(|number| Rc::clone(&self.all[*number as usize])).collect();
        Ordered { texts, places }
    }
}

impl Ordered {
    /// Puts places for the numbers of a row: rows are in the order of these.
    pub(crate) fn place(&self, row: &mut [u32]) {
        row.iter_mut().for_each(|number| *number = self.places[*number as usize]);
    }

    /// The texts at such places.
    pub(crate) fn texts(&self, row: &[u32]) -> Vec<Rc<str>> {
        row.iter().map(|place| Rc::clone(&self.texts[*place as usize])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_their_texts() {
        let mut texts = Texts::default();
        let numbers = ["b", "c", "a", "b", "a"].map(|text| texts.number(text.to_owned()));
        assert_eq!(numbers, [0, 1, 2, 0, 2]);
        let ordered = texts.ordered();
        let mut rows = [vec![0, 1], vec![2], vec![0]];
        rows.iter_mut().for_each(|row| ordered.place(row));
        rows.sort_unstable();
        let rows = rows.map(|row| ordered.texts(&row).join(" "));
        assert_eq!(rows, ["a", "b", "b c"]);
    }
}
