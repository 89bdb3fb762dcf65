//! Tables that read the same in a terminal and in markdown.

use std::fmt;

/// Rows under named columns: the first column to the left, the others to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new<C: Into<String>>(columns: impl IntoIterator<Item = C>) -> Self {
        Table { rows: vec![columns.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row, of as many cells as there are columns.
    pub(crate) fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.rows[0].len(), "a row of {cells:?}");
        self.rows.push(cells);
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            write!(f, "| {:<1$} |", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                write!(f, " {cell:>width$} |")?;
            }
            writeln!(f)?;
            if number == 0 {
                write!(f, "|{}|", "-".repeat(widths[0] + 2))?;
                for width in &widths[1..] {
                    write!(f, "{}:|", "-".repeat(width + 1))?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
