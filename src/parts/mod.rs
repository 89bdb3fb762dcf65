//! A filter built in parts: where a key lies in a filter that is not there, and some shards of it by themselves.

mod layout;
mod part;

pub use layout::Layout;
pub use part::FilterPart;
