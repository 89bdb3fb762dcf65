//! Clients blocked until a background thread has finished.

use super::{Context, Failure, api};
use std::os::raw::{c_int, c_void};
use valkey_module::raw;

/// Runs `work` on a new thread. The client waits for the reply, "OK" or an error, while the server continues. Fails without a thread.
pub(crate) fn reply_later(
    context: Context<'_>,
    work: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<(), Failure> {
    type Done = Result<(), String>;
    #[derive(Clone, Copy)]
    struct Client(*mut raw::RedisModuleBlockedClient);
    // SAFETY: the server lets any thread unblock a client.
    unsafe impl Send for Client {}

    unsafe extern "C" fn reply(ctx: *mut raw::RedisModuleCtx, _: *mut *mut raw::RedisModuleString, _: c_int) -> c_int {
        // SAFETY: 1. the context lives as long as the call; 2. the private data is the box given to `UnblockClient` below.
        let (context, done) =
            unsafe { (Context::new(ctx), api!(RedisModule_GetBlockedClientPrivateData(ctx)).cast::<Done>().as_ref()) };
        match done {
            Some(Err(error)) => context.reply_failure(Failure::from(error.clone())),
            _ => context.reply_ok(),
        }
        raw::REDISMODULE_OK as c_int
    }
    unsafe extern "C" fn free(_: *mut raw::RedisModuleCtx, done: *mut c_void) {
        // SAFETY: the box given to `UnblockClient` below, freed once.
        drop(unsafe { Box::from_raw(done.cast::<Done>()) });
    }

    // SAFETY: the context lives, and the client may block.
    let client = Client(unsafe { api!(RedisModule_BlockClient(context.0, Some(reply), None, Some(free), 0)) });
    let spawned = std::thread::Builder::new().spawn(move || {
        let client = client;
        let done = super::guarded(Err(String::from("ERR the module failed; see the log of the server")), work);
        // SAFETY: the client is unblocked once, with data that `free` frees.
        unsafe { api!(RedisModule_UnblockClient(client.0, Box::into_raw(Box::new(done)).cast())) };
    });
    spawned.map(drop).map_err(|error| {
        // SAFETY: the client is unblocked once: there is no thread that would do it.
        unsafe { api!(RedisModule_AbortBlock(client.0)) };
        format!("ERR no thread for the export: {error}").into()
    })
}
