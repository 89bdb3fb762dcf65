//! The comparison with other crates, with an earlier commit of this one as a contestant.

use std::process::ExitCode;

mod contestant {
    compare::version!(earlier, "the earlier commit");
}

fn main() -> ExitCode {
    compare::main(Some(contestant::version()))
}
