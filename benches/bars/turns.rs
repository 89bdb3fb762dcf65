//! Contests turn by turn, and which of them to run.

/// What the command line asks for.
pub(crate) struct Program {
    words: Vec<String>,
    turns: Option<usize>,
    /// The size of the large table, as a power of two, if one is asked for.
    pub(crate) large: Option<u32>,
}

impl Program {
    pub(crate) fn from_arguments() -> Self {
        let mut program = Program { words: Vec::new(), turns: None, large: None };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // Given by `cargo bench` itself.
                "--bench" => {}
                "--turns" => program.turns = Some(number(arguments.next(), 1..=1000)),
                "--large" => program.large = Some(number(arguments.next(), 17..=32) as u32),
                word if word.starts_with('-') => refuse(&format!("there is no option {word}")),
                word => program.words.push(word.into()),
            }
        }
        program
    }

    /// Contests of this many turns, if no other number is asked for.
    pub(crate) fn contests(&self, turns: usize) -> Contests {
        Contests { words: self.words.clone(), turns: self.turns.unwrap_or(turns) }
    }
}

/// Which contests to run, and for how many turns.
pub(crate) struct Contests {
    words: Vec<String>,
    turns: usize,
}

impl Contests {
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.words.iter().all(|word| name.contains(word))
    }

    /// Runs a contest: `ours` and `theirs` return the cost of a turn in nanoseconds for each operation.
    pub(crate) fn run(
        &self,
        name: &str,
        at_least: impl Into<Option<f64>>,
        mut ours: impl FnMut() -> f64,
        mut theirs: impl FnMut() -> f64,
    ) {
        if !self.wants(name) {
            return;
        }
        let mut turns: Vec<[f64; 3]> = (0..self.turns)
            .map(|turn| {
                let (a, b) = if turn % 2 == 0 {
                    let a = ours();
                    (a, theirs())
                } else {
                    let b = theirs();
                    (ours(), b)
                };
                [b / a, 1e3 / a, 1e3 / b]
            })
            .collect();
        let mut median = |column: usize| {
            turns.sort_by(|x, y| x[column].total_cmp(&y[column]));
            turns[turns.len() / 2][column]
        };
        let (ours, theirs, ratio) = (median(1), median(2), median(0));
        let (low, high) = (turns[0][0], turns[turns.len() - 1][0]);
        let bar = at_least.into().map_or_else(String::new, |bar| {
            format!("at least {bar:.2}x: {}", if ratio >= bar { "met" } else { "MISSED" })
        });
        println!("{name:<64} {ratio:6.2}x ({low:.2} to {high:.2})  {ours:6.1} against {theirs:6.1} M/s  {bar}");
    }
}

fn number(argument: Option<String>, possible: std::ops::RangeInclusive<usize>) -> usize {
    argument.and_then(|text| text.parse().ok()).filter(|number| possible.contains(number)).unwrap_or_else(|| {
        refuse(&format!("a number from {} to {} is needed", possible.start(), possible.end()));
    })
}

fn refuse(why: &str) -> ! {
    eprintln!("{why}; possible are --turns N, --large LOG2 and words of a contest's name");
    std::process::exit(2);
}
