//! Tells whether the interpreter is one without a lock.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
