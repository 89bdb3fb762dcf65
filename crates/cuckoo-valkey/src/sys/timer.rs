//! The event subscriptions.

use super::{Context, Text, api, guarded};
use core::marker::PhantomData;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use valkey_module::raw;

/// Calls `ticks::due` `hz` times per second, by default every 100 milliseconds. A timer of the server would wait if its clock is set back.
pub(crate) fn watch_time(context: Context<'_>) {
    unsafe extern "C" fn call(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
        // SAFETY: the context lives as long as the call.
        let context = unsafe { Context::new(ctx) };
        guarded((), || crate::ticks::due(context));
    }
    let event = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_CRON_LOOP, dataver: 1 };
    // SAFETY: the context lives.
    unsafe { api!(RedisModule_SubscribeToServerEvent(context.0, event, Some(call))) };
}

/// Calls `ticks::appeared` for each key that gets another name: renamed, copied or moved.
pub(crate) fn watch_names(context: Context<'_>) {
    unsafe extern "C" fn call(
        ctx: *mut raw::RedisModuleCtx,
        _: c_int,
        event: *const c_char,
        key: *mut raw::RedisModuleString,
    ) -> c_int {
        // SAFETY: all live as long as the call, and the event ends in 0.
        let (context, event) = unsafe { (Context::new(ctx), CStr::from_ptr(event)) };
        if [c"rename_to", c"copy_to", c"move_to"].contains(&event) {
            guarded((), || crate::ticks::appeared(context, Text(key, PhantomData)));
        }
        raw::REDISMODULE_OK as c_int
    }
    // SAFETY: the context lives.
    unsafe { api!(RedisModule_SubscribeToKeyspaceEvents(context.0, raw::REDISMODULE_NOTIFY_GENERIC, Some(call))) };
}

/// Calls `ticks::swapped` after `SWAPDB`.
pub(crate) fn watch_swaps(context: Context<'_>) {
    unsafe extern "C" fn call(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, data: *mut c_void) {
        // SAFETY: the data of this event has this type.
        let info: raw::RedisModuleSwapDbInfo = unsafe { data.cast::<raw::RedisModuleSwapDbInfo>().read() };
        guarded((), || crate::ticks::swapped(info.dbnum_first, info.dbnum_second));
    }
    let event = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_SWAPDB, dataver: 1 };
    // SAFETY: the context lives.
    unsafe { api!(RedisModule_SubscribeToServerEvent(context.0, event, Some(call))) };
}
