//! Tables for a terminal: numbers at the right end of their columns, then a text.

/// A table.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<(Vec<String>, Vec<String>)>,
}

impl Table {
    /// A table with these columns before the text.
    pub(crate) fn new(header: Vec<String>) -> Table {
        Table { header, rows: Vec::new() }
    }

    /// Adds a row: a cell for each column, and the lines of the text.
    pub(crate) fn row(&mut self, cells: Vec<String>, lines: Vec<String>) {
        self.rows.push((cells, lines));
    }

    /// The whole text.
    pub(crate) fn text(&self) -> String {
        let cells = |at: usize| self.rows.iter().filter_map(move |(cells, _)| cells.get(at));
        let width = |(at, header): (usize, &String)| {
            cells(at).map(|cell| cell.chars().count()).chain([header.chars().count()]).max()
        };
        let widths: Vec<usize> = self.header.iter().enumerate().filter_map(width).collect();
        let line = |cells: &[String], text: &str| {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                line += &format!("  {cell:>width$}");
            }
            format!("{}\n", format!("{line}  {text}").trim_end())
        };
        let mut text = line(&self.header, "");
        let blank = vec![String::new(); widths.len()];
        for (cells, lines) in &self.rows {
            for (place, name) in lines.iter().enumerate() {
                // Callers stand below what they call.
                let indent = if place == 0 { "" } else { "  " };
                text += &line(if place == 0 { cells } else { &blank }, &format!("{indent}{name}"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(vec!["live".to_owned(), "%".to_owned()]);
        table.row(vec!["1.00 MiB".into(), "9%".into()], vec!["f".into(), "main".into()]);
        table.row(vec!["1 B".into(), "±".into()], vec!["g".into()]);
        assert_eq!(
            table.text(),
            concat!(
                "      live   %\n",
                "  1.00 MiB  9%  f\n",
                "                  main\n",
                "       1 B   ±  g\n",
            )
        );
    }
}
