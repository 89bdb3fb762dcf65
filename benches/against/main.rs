//! The comparison with an earlier commit of this crate.

use std::process::ExitCode;

mod contestant {
    compare::version!(
        earlier,
        "the earlier commit",
        counting | set,
        keys | set.par_add(keys),
        tagged | set,
        keys | set.par_insert(keys, 1)
    );
}

fn main() -> ExitCode {
    compare::main(contestant::contestants())
}
