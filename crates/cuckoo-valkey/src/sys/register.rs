//! Registration of the module's commands.

use super::{Context, Text, api, guarded};
use crate::commands::{self, Outcome};
use crate::{export, settings, ticks};
use core::marker::PhantomData;
use std::ffi::CStr;
use std::os::raw::c_int;
use valkey_module::raw;

type Entry = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const REFUSED: c_int = raw::REDISMODULE_ERR as c_int;

const READ: u32 = raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS;
const CHANGE: u32 = raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_ACCESS | raw::REDISMODULE_CMD_KEY_UPDATE;

/// Ends a list of keys.
// SAFETY: null and 0 are valid for all fields.
const NO_KEYS: raw::RedisModuleCommandKeySpec = unsafe { core::mem::zeroed() };

struct Command {
    name: &'static CStr,
    entry: Entry,
    flags: &'static CStr,
    /// The number of arguments including the name; negated if it is a minimum.
    arity: c_int,
    last_key: c_int,
    /// ACL categories, from Redis 7.2 on. Redis 7.0 derives them from the flags.
    categories: &'static CStr,
}

/// The arguments of a command, including its name.
///
/// # Safety
/// The pointer and the count must be those of a command callback.
unsafe fn arguments<'a>(argv: *mut *mut raw::RedisModuleString, argc: c_int) -> &'a [Text<'a>] {
    // SAFETY: 1. `Text` is a transparent pointer to a string; 2. the server owns the strings while the command runs.
    unsafe { core::slice::from_raw_parts(argv.cast(), argc as usize) }
}

macro_rules! commands {
    ($($name:literal => $run:expr, $flags:literal, $arity:literal, $last_key:literal, $categories:literal;)*) => {
        [$({
            unsafe extern "C" fn entry(
                ctx: *mut raw::RedisModuleCtx,
                argv: *mut *mut raw::RedisModuleString,
                argc: c_int,
            ) -> c_int {
                let run: fn(Context<'_>, &[Text<'_>]) -> Outcome = $run;
                // SAFETY: both live as long as the command runs.
                let (context, arguments) = unsafe { (Context::new(ctx), arguments(argv, argc)) };
                let outcome = guarded(Err("ERR the module failed; see the log of the server".into()), || run(context, arguments));
                if let Err(failure) = outcome {
                    context.reply_failure(failure);
                }
                OK
            }
            Command { name: $name, entry, flags: $flags, arity: $arity, last_key: $last_key, categories: $categories }
        }),*]
    };
}

static COMMANDS: [Command; 17] = commands! {
    c"cf.reserve" => commands::reserve, c"write deny-oom", -3, 1, c"cuckoo write slow";
    c"cf.add" => commands::add, c"write deny-oom fast", 3, 1, c"cuckoo write fast";
    c"cf.addnx" => commands::add_new, c"write deny-oom fast", 3, 1, c"cuckoo write fast";
    c"cf.insert" => commands::insert, c"write deny-oom", -4, 1, c"cuckoo write slow";
    c"cf.insertnx" => commands::insert_new, c"write deny-oom", -4, 1, c"cuckoo write slow";
    c"cf.exists" => commands::exists, c"readonly fast", 3, 1, c"cuckoo read fast";
    c"cf.mexists" => commands::contains_batch, c"readonly", -3, 1, c"cuckoo read slow";
    c"cf.del" => commands::delete, c"write fast", 3, 1, c"cuckoo write fast";
    c"cf.count" => commands::count, c"readonly fast", 3, 1, c"cuckoo read fast";
    c"cf.info" => commands::info, c"readonly fast", -2, 1, c"cuckoo read fast";
    c"cf.debug" => commands::debug, c"readonly fast", 2, 1, c"cuckoo read fast";
    c"cf.compact" => commands::compact, c"readonly fast", 2, 1, c"cuckoo read fast";
    c"cf.scandump" => commands::scan_dump, c"readonly", 3, 1, c"cuckoo read slow";
    c"cf.loadchunk" => commands::load_chunk, c"write deny-oom", 4, 1, c"cuckoo write slow";
    c"cf.merge" => commands::merge, c"write deny-oom", -3, -1, c"cuckoo write slow";
    c"cf.export" => export::export, c"readonly admin", 3, 1, c"cuckoo slow admin dangerous";
    c"cf.tick" => ticks::tick, c"write admin", 4, 1, c"cuckoo slow admin dangerous";
};

/// Loads the module.
///
/// # Safety
/// Only the server may call this.
#[allow(non_snake_case)]
#[expect(unreachable_pub, reason = "the server finds it by its name")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: the context is that of the call. Nothing allocates before the bindings are set here.
    if unsafe { raw::Export_RedisModule_Init(ctx, c"cuckoo".as_ptr(), 1, raw::REDISMODULE_APIVER_1 as c_int) } != OK {
        return REFUSED;
    }
    super::alloc::init();
    // SAFETY: as above.
    let (context, arguments) = unsafe { (Context::new(ctx), arguments(argv, argc)) };
    guarded(REFUSED, || match load(context, arguments) {
        Ok(()) => OK,
        Err(error) => {
            context.warn(&error);
            REFUSED
        }
    })
}

/// The keys from the argument `first` to the one that is `last` after it, or with -1 to the last argument. By default, the server takes
/// the keys of any command for changed, and `%R~` does not permit them.
fn keys(access: u32, first: c_int, last: c_int) -> raw::RedisModuleCommandKeySpec {
    let mut keys = NO_KEYS;
    keys.flags = access.into();
    keys.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    keys.bs.index.pos = first;
    keys.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    keys.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 { lastkey: last, keystep: 1, limit: 0 };
    keys
}

fn load(context: Context<'_>, arguments: &[Text<'_>]) -> Result<(), String> {
    let Context(ctx, PhantomData) = context;
    settings::set(arguments)?;
    super::fork::init()?;
    super::data_type::register(context)?;
    // The callbacks report failed reads themselves, and a replica serves its old data while it loads new data.
    let options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
    // SAFETY: the module is being loaded.
    unsafe { api!(RedisModule_SetModuleOptions(ctx, options as c_int)) };
    // SAFETY: the bindings are set.
    let categories = unsafe { (raw::RedisModule_AddACLCategory, raw::RedisModule_SetCommandACLCategories) };
    if let (Some(add), Some(_)) = categories {
        // SAFETY: the module is being loaded.
        unsafe { add(ctx, c"cuckoo".as_ptr()) };
    }
    for command in &COMMANDS {
        let refused = || format!("the server refuses the command {:?}", command.name);
        let version = raw::RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        let first = if command.flags.to_bytes().split(|&byte| byte == b' ').any(|flag| flag == b"readonly") {
            READ
        } else {
            CHANGE
        };
        // Of several keys, all but the first are read.
        let sources = if command.last_key == 1 { NO_KEYS } else { keys(READ, 2, command.last_key) };
        let key_specs = [keys(first, 1, 0), sources, NO_KEYS];
        let info = raw::RedisModuleCommandInfo {
            version: &raw const version,
            since: c"1.0.0".as_ptr(),
            arity: command.arity,
            key_specs: key_specs.as_ptr().cast_mut(),
            // SAFETY: the other fields are pointers, which may be null.
            ..unsafe { core::mem::zeroed() }
        };
        let Command { name, entry, flags, last_key, .. } = *command;
        // SAFETY: 1. the module is being loaded; 2. the strings end in 0, and the server copies them and `info`.
        unsafe {
            if api!(RedisModule_CreateCommand(ctx, name.as_ptr(), Some(entry), flags.as_ptr(), 1, last_key, 1)) != OK {
                return Err(refused());
            }
            let made = api!(RedisModule_GetCommand(ctx, name.as_ptr()));
            if made.is_null() || api!(RedisModule_SetCommandInfo(made, &raw const info)) != OK {
                return Err(refused());
            }
            if let (Some(_), Some(set)) = categories
                && set(made, command.categories.as_ptr()) != OK
            {
                return Err(refused());
            }
        }
    }
    ticks::begin(context);
    Ok(())
}
