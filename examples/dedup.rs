//! Removes repeated lines from a stream, on all cores, and prints its memory in advance.
//!
//! ```text
//! cargo run --release -p examples --bin dedup -- urls-1.txt urls-2.txt > new.txt    # grows with the lines
//! zcat crawl-*.gz | cargo run --release -p examples --bin dedup -- --capacity 1000000000 --rate 0.0001 > new.txt
//! ```
//!
//! The output has each line once, in the order of the input. At the given rate, a new line is mistaken for a repeated
//! one and is missing; an exact set would store the lines themselves. If there are more new lines than the filter has
//! room for, refused lines are written unchecked, so none is lost. `RAYON_NUM_THREADS` sets the threads of the lookups.

use clap::Parser;
use concurrent_cuckoo_filter::CuckooFilter;
use indicatif::{HumanBytes, HumanCount};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Removes repeated lines from files or from standard input.
#[derive(Parser)]
struct Arguments {
    /// Files of lines, read one after the other [default: standard input]
    files: Vec<PathBuf>,
    /// Expected number of distinct lines [default: the filter grows, up to 10,000,000,000 lines]
    #[arg(long)]
    capacity: Option<usize>,
    /// Fraction of new lines that may be mistaken for repeated ones
    #[arg(long, default_value_t = 0.0001)]
    rate: f64,
}

/// The maximum number of distinct lines of a growing filter.
const MOST: usize = 10_000_000_000;

/// Bytes read at a time, and then up to as many for the rest of the last line.
const CHUNK: usize = 4 << 20;

/// Chunks between two stages, so that reads, lookups and writes overlap.
const WAITING: usize = 2;

/// Whole lines. The last line may lack its line feed.
type Chunk = Vec<u8>;

fn lines(chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    chunk.split_inclusive(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

#[derive(Default)]
struct Counts {
    new: u64,
    repeated: u64,
    refused: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "dedup: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    // Opened first, so that a wrong name is reported at once.
    let mut inputs: Vec<(String, Box<dyn Read + Send>)> = Vec::new();
    for path in &arguments.files {
        let file = File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        inputs.push((path.display().to_string(), Box::new(file)));
    }
    if inputs.is_empty() {
        inputs.push(("standard input".into(), Box::new(io::stdin())));
    }

    let builder = CuckooFilter::<[u8]>::builder().false_positive_rate(arguments.rate);
    let builder = match arguments.capacity {
        Some(capacity) => builder.capacity(capacity),
        None => builder.capacity(0).max_capacity(MOST),
    };
    let memory_at =
        |lines| builder.memory_usage_at(lines).map(|bytes| HumanBytes(bytes as u64)).map_err(|error| error.to_string());
    let mut memory = format!("{} for the filter", memory_at(0)?);
    if arguments.capacity.is_none() {
        memory += &format!(" ({} at 100,000,000 new lines)", memory_at(100_000_000)?);
    }
    // Chunks wait before and after the lookups, and each of the three stages has one: at most a byte and a result per line
    // feed, and the rest of a line, and a slice per line in one stage.
    let lines = ((2 * WAITING + 3) * 3 + size_of::<&[u8]>()) * CHUNK;
    let _ = writeln!(io::stderr(), "memory: {memory}, up to {} for lines", HumanBytes(lines as u64));
    let filter = builder.build().map_err(|error| error.to_string())?;

    let (give, chunks) = sync_channel(WAITING);
    let (put, admitted) = sync_channel(WAITING);
    let counts = thread::scope(|scope| {
        let reader = scope.spawn(move || read(inputs, &give));
        let writer = scope.spawn(move || write(&admitted));
        // Returning closes its ends of the channels, which ends the writer, and the reader if it still runs.
        let counts = admit(&filter, chunks, put);
        let written = writer.join().expect("the writer does not panic");
        let read = reader.join().expect("the reader does not panic");
        written.and(read).map(|()| counts)
    })?;
    summary(&counts, &filter);
    Ok(())
}

/// Reads whole lines, one chunk at a time.
fn read(inputs: Vec<(String, Box<dyn Read + Send>)>, give: &SyncSender<Chunk>) -> Result<(), String> {
    for (name, input) in inputs {
        let mut input = BufReader::with_capacity(1 << 16, input);
        loop {
            let mut bytes = Vec::with_capacity(CHUNK + 4096);
            let failed = |error| format!("cannot read {name}: {error}");
            input.by_ref().take(CHUNK as u64).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.is_empty() {
                break;
            }
            if bytes.last() != Some(&b'\n') {
                input.by_ref().take(CHUNK as u64).read_until(b'\n', &mut bytes).map_err(failed)?;
            }
            if bytes.len() == 2 * CHUNK && bytes.last() != Some(&b'\n') {
                let most = HumanBytes(CHUNK as u64);
                return Err(format!("{name} has a line of {most} or more; a bounded memory needs shorter lines"));
            }
            if give.send(bytes).is_err() {
                // The writer has failed, and returns the error.
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Sends each chunk with the positions of its new lines.
fn admit(filter: &CuckooFilter<[u8]>, chunks: Receiver<Chunk>, put: SyncSender<(Chunk, Vec<bool>)>) -> Counts {
    let mut counts = Counts::default();
    for chunk in chunks {
        let keys: Vec<&[u8]> = lines(&chunk).collect();
        let mut admitted = vec![false; keys.len()];
        let report = filter.bulk().insert_unique(&keys, &mut admitted);
        // A refused line may be new, so it is written, possibly more than once.
        report.refused.iter().for_each(|refused| admitted[refused.index] = true);
        drop(keys);
        counts.new += report.inserted as u64;
        counts.repeated += report.present as u64;
        counts.refused += report.refused.len() as u64;
        if put.send((chunk, admitted)).is_err() {
            break;
        }
    }
    counts
}

fn write(admitted: &Receiver<(Chunk, Vec<bool>)>) -> Result<(), String> {
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let failed = |error| format!("cannot write the lines: {error}");
    for (chunk, admitted) in admitted {
        for (line, _) in lines(&chunk).zip(admitted).filter(|&(_, admitted)| admitted) {
            output.write_all(line).and_then(|()| output.write_all(b"\n")).map_err(failed)?;
        }
    }
    output.flush().map_err(failed)
}

fn summary(counts: &Counts, filter: &CuckooFilter<[u8]>) {
    let Counts { new, repeated, refused } = *counts;
    // A new line is compared with all earlier new lines: half of them, on average.
    let missing = filter.stats().expected_false_positive_rate / 2.0 * new as f64;
    let mut text = format!(
        "{} lines: {} new, {} repeated, of which about {missing:.0} are new lines mistaken for repeated ones",
        HumanCount(new + repeated + refused),
        HumanCount(new),
        HumanCount(repeated),
    );
    if refused > 0 {
        let refused = HumanCount(refused);
        text += &format!(
            "\n{refused} lines were refused by the full filter and written unchecked: use a larger --capacity"
        );
    }
    let _ = writeln!(io::stderr(), "{text}");
}

#[test]
fn a_line_without_end_is_an_error() {
    let (give, _chunks) = sync_channel(WAITING);
    let zeros = Box::new(io::repeat(0).take(3 * CHUNK as u64));
    let error = read(vec![("zeros".into(), zeros)], &give).unwrap_err();
    assert!(error.starts_with("zeros has a line of 4.00 MiB or more"), "{error}");
}
