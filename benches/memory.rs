//! The memory that a bulk load takes beside the table: `cargo bench -p compare --bench memory`, on 2^27 slots, or on
//! as many as an argument says: `-- 22`. A program of its own, because to count memory slows whatever allocates.

use compare::Size;
use compare::contestants::ours;
use compare::field::keys;
use peak_alloc::PeakAlloc;
use rayon::ThreadPoolBuilder;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() {
    // The option is given by `cargo bench` itself.
    let log2 = std::env::args().skip(1).find(|argument| argument != "--bench").map_or(27, |argument| {
        argument.parse().ok().filter(|log2| (17..=32).contains(log2)).unwrap_or_else(|| {
            eprintln!("the slots of the table are needed as a power of two, 17 to 32, not {argument:?}");
            std::process::exit(2);
        })
    });
    let size = Size::new(log2, 16);
    let filter = ours::build(size);
    let present = keys(1, size.keys.min(filter.capacity()));
    let two = ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let load = || {
        filter.clear();
        assert_eq!(two.install(|| filter.par_insert(&present)).inserted, present.len());
    };
    // The first one starts the threads.
    load();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    load();
    let mebibytes = (MEMORY.peak_usage() - before) as f64 / f64::from(1 << 20);
    let met = if mebibytes <= 256.0 { "met" } else { "MISSED" };
    println!("{:<64} {mebibytes:6.1} MiB at the most  at most 256: {met}", format!("memory of par_insert 2^{log2}"));
}
