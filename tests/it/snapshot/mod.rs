//! Filters in files.

mod crash;
mod damage;
mod delta;
mod described;
mod file;
mod golden;
mod growing;
mod header;
mod parallel;
mod parts;
mod refused;
mod replay;
mod round_trip;
