//! The record of a run: markdown, the figures beside it, and where it was measured.

pub(crate) mod figure;
pub(crate) mod machine;

use std::io::Write;
use std::path::Path;
use std::{fmt, fs, io};

const PAGE: &str = "README.md";

/// What a run found: printed as it comes, kept as markdown.
#[derive(Default)]
pub(crate) struct Record {
    markdown: String,
    /// What is printed is no part of the page.
    pub(crate) aside: bool,
    /// File names and contents.
    figures: Vec<(String, String)>,
}

impl Record {
    /// Adds a paragraph of markdown.
    pub(crate) fn text(&mut self, paragraph: &str) {
        // Whoever closed the pipe has read enough; the record goes on.
        let _ = writeln!(io::stdout(), "{paragraph}\n");
        if !self.aside {
            self.markdown.push_str(paragraph);
            self.markdown.push_str("\n\n");
        }
    }

    pub(crate) fn heading(&mut self, heading: &str) {
        self.text(&format!("## {heading}"));
    }

    pub(crate) fn table(&mut self, table: &Table) {
        self.text(table.to_string().trim_end());
    }

    /// Adds a figure: `name` is that of its file, without an ending, and `alt` says what it shows.
    pub(crate) fn figure(&mut self, name: &str, alt: &str, svg: String) {
        let file = format!("{name}.svg");
        if !self.aside {
            self.markdown.push_str(&format!("![{alt}]({file})\n\n"));
        }
        self.figures.push((file, svg));
    }

    /// Writes the page and its figures into this folder.
    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.figures.iter().try_for_each(|(file, svg)| fs::write(folder.join(file), svg))?;
        fs::write(folder.join(PAGE), format!("{}\n", self.markdown.trim_end()))
    }
}

/// Rows under named columns: the first column to the left, the others to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
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
