//! The comparison with other crates, and its record.

use std::process::ExitCode;

fn main() -> ExitCode {
    compare::main(Vec::new())
}
