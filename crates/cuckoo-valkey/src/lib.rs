//! A Valkey and Redis module with RedisBloom's `CF.*` commands, on [`concurrent_cuckoo_filter`]. The README lists the
//! commands.

mod commands;
mod export;
mod pieces;
mod settings;
mod sys;
mod ticks;
mod value;
