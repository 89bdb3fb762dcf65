//! The comparison with other crates, with an earlier commit of this one as a contestant.

use std::process::ExitCode;

mod contestant {
    // Later commits map every kind of filter: `MappedFilter<CuckooFilter<u64, StableHashBuilder>>`.
    compare::version!(earlier, "the earlier commit", earlier::MappedFilter<u64, earlier::StableHashBuilder>);
}

fn main() -> ExitCode {
    compare::main(Some(contestant::version()))
}
