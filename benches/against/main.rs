//! The comparison with an earlier commit of this crate.

use std::process::ExitCode;

mod contestant {
    compare::version!(earlier, "the earlier commit");
}

fn main() -> ExitCode {
    compare::main(contestant::contestants())
}
