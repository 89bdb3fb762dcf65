//! Filters built in parts: key placement without a filter, and some shards with their memory.

mod layout;
mod part;

pub use layout::Layout;
pub use part::FilterPart;
