//! The program over real HTTP.

mod common;
mod keys;
mod limits;
mod page;
mod restarts;
mod uploads;
