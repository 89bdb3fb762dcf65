//! A process that is killed at any step, in memory that outlives it.
//!
//! | file  | test                                                                                     |
//! |-------|------------------------------------------------------------------------------------------|
//! | steps | takes over copies of the memory after each step of each operation, and of the take-over  |
//! | kills | kills processes and their threads, and starts their successors                           |

mod kills;
mod steps;
