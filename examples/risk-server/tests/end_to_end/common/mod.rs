//! What every test needs: a server of its own, a client, and keys.

pub(crate) mod client;
pub(crate) mod folder;
pub(crate) mod keys;
pub(crate) mod raw;
pub(crate) mod server;
pub(crate) mod wait;
