//! The record of a run: markdown, the figures beside it, and where it was measured.

pub(crate) mod figure;
pub(crate) mod machine;
mod table;

pub(crate) use table::Table;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What a run found: printed as it comes, kept as markdown.
pub(crate) struct Record {
    date: String,
    markdown: String,
    /// File names and contents.
    figures: Vec<(String, String)>,
}

impl Record {
    /// An empty record of the day `date` (`2026-01-31`), which names its files.
    pub(crate) fn new(date: &str) -> Self {
        Record { date: date.into(), markdown: String::new(), figures: Vec::new() }
    }

    /// Begins a section.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.add(&format!("## {heading}"));
    }

    /// Adds a paragraph of markdown.
    pub(crate) fn text(&mut self, text: &str) {
        self.add(text);
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: Table) {
        self.add(table.to_string().trim_end());
    }

    /// Adds a figure: `name` is that of its file, without an ending, and `alt` says what it shows.
    pub(crate) fn figure(&mut self, name: &str, alt: &str, svg: String) {
        let file = format!("{name}.svg");
        self.markdown.push_str(&format!("![{alt}]({}/{file})\n\n", self.date));
        self.figures.push((file, svg));
    }

    /// Writes the record into the folder `out`, in place of an older one of the same day, and returns its path.
    pub(crate) fn save(&self, out: &Path) -> io::Result<PathBuf> {
        let pictures = out.join(&self.date);
        fs::create_dir_all(&pictures)?;
        for (file, svg) in &self.figures {
            fs::write(pictures.join(file), svg)?;
        }
        let path = out.join(format!("{}.md", self.date));
        fs::write(&path, format!("# Benchmarks of {}\n\n{}\n", self.date, self.markdown.trim_end()))?;
        Ok(path)
    }

    fn add(&mut self, paragraph: &str) {
        // Whoever closed the pipe has read enough; the record goes on.
        let _ = writeln!(io::stdout(), "{paragraph}\n");
        self.markdown.push_str(paragraph);
        self.markdown.push_str("\n\n");
    }
}
