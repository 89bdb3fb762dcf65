//! Tables, for a terminal and in Markdown.

/// Rows of cells. The first columns are words, the others numbers.
pub(crate) struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    words: usize,
}

impl Table {
    /// An empty one, whose first `words` columns begin at the left.
    pub(crate) fn new(heads: &[&str], words: usize) -> Self {
        Table { heads: heads.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new(), words }
    }

    /// Adds a row; what is missing is empty.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.heads.len(), String::new());
        self.rows.push(cells);
    }

    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rules = (0..self.heads.len()).map(|column| if column < self.words { "---" } else { "---:" });
        let rules = format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
        line(&self.heads) + &rules + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    pub(crate) fn text(&self) -> String {
        let all = || std::iter::once(&self.heads).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column < self.words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        all().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_at_the_left_and_numbers_end_at_the_right() {
        let mut table = Table::new(&["case", "rate", "p99"], 1);
        table.row(vec!["single".into(), "1,000".into(), "5 us".into()]);
        table.row(vec!["a".into(), "7".into()]);
        assert_eq!(table.text(), "case     rate   p99\nsingle  1,000  5 us\na           7\n");
        assert_eq!(
            table.markdown(),
            "| case | rate | p99 |\n|---|---:|---:|\n| single | 1,000 | 5 us |\n| a | 7 |  |\n"
        );
    }
}
