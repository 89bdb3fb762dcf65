//! A process that is killed at any step, in memory that outlives it.
//!
//! | file  | what it shows                                                                                          |
//! |-------|--------------------------------------------------------------------------------------------------------|
//! | steps | the memory as it stands after each step of each operation, taken over; and after each step of that     |
//! | kills | processes that are killed where they stand, with their threads, and whatever the next one does of that |

mod kills;
mod steps;
