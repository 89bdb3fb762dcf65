//! The comparison with an earlier commit of this crate.

use std::process::ExitCode;

mod contestant {
    #[cfg(not(feature = "plain"))]
    compare::version!(earlier, "the earlier commit");
    #[cfg(feature = "plain")]
    compare::version!(plain earlier, "the earlier commit");
}

#[cfg(not(feature = "plain"))]
use contestant::contestants;
#[cfg(feature = "plain")]
use contestant::plain as contestants;

fn main() -> ExitCode {
    compare::main(contestants())
}
