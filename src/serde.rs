//! Serialization of statistics and reports.

use crate::error::InsertError;
use crate::report::{BulkReport, MergeReport, Refusal, RemoveReport};
use crate::stats::Stats;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Serializes a struct by the names of its fields.
macro_rules! serialize {
    ($($type:ident { $($field:ident),+ })+) => {
        $(
            #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
            impl Serialize for $type {
                fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
                    let $type { $($field),+ } = self;
                    let mut fields = serializer.serialize_struct(stringify!($type), [$(stringify!($field)),+].len())?;
                    $(fields.serialize_field(stringify!($field), $field)?;)+
                    fields.end()
                }
            }
        )+
    };
}

serialize! {
    Stats {
        len, slots, load_factor, expected_false_positive_rate, epoch, relocations, longest_path, refused_full,
        refused_too_many_copies, tables, doublings, splits, time_in_splits
    }
    BulkReport { inserted, present, refused, refused_unlisted }
    Refusal { index, error }
    RemoveReport { removed, missing, missing_unlisted }
    MergeReport { inserted, present, refused }
}

/// Serializes the name of the variant.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl Serialize for InsertError {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_str(&format!("{self:?}"))
    }
}
