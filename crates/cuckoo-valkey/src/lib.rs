//! The `CF.*` commands of RedisBloom on [`concurrent_cuckoo_filter`], as a module for Valkey and Redis. Its README has the
//! commands and how to run it.

mod commands;
mod export;
mod pieces;
mod sys;
mod ticks;
mod value;
