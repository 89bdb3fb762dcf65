#!/usr/bin/env bash
# The library's tests where a number has 32 bits (i386), and where its highest byte comes first (s390x), with the oldest
# Rust that the crate supports.
#
#   ci/other-machines.sh         unit tests, golden files, snapshots, and operations against a multiset (some minutes)
#   ci/other-machines.sh full    all tests but those that are named below (some twenty minutes on 2 cores)
#
# Debian 12's security updates have Rust 1.96 for both as rustc-web: nothing is run while the crate needs a newer one. From Debian's mirror it
# takes that, cross linkers and qemu, 320 MB, and unpacks them in target/other-machines: nothing is installed, and root is
# not needed. i386 runs by itself on an x86-64 processor, s390x under qemu, which is some ten times slower. Where apt, the
# mirror or the processor is another one, that is said and nothing is run.

set -euo pipefail
cd "$(dirname "$0")/.."
. ci/tool.sh

case ${1-short} in
    short | full) what=${1-short} ;;
    *) usage >&2 && exit 2 ;;
esac

# What Debian has for all three machines.
debian_rust=1.96
minimum=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
printf '%s\n' "$minimum" $debian_rust | sort --check=quiet --version-sort ||
    skip "this takes Rust $minimum for i386 and s390x, and Debian 12 has $debian_rust"

case "$(uname -m) $(command -v apt-get) $(command -v dpkg)" in
    'x86_64 /'*' /'*) ;;
    *) skip 'this takes an x86-64 processor and the tools of Debian' ;;
esac
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] || skip "Debian's keys are not there"

place=$(target_directory)/other-machines
root=$place/root
mkdir -p "$place"
place=$(realpath "$place")

# From its own lists and for all three machines, whatever the system's apt has.
debian() {
    APT_CONFIG=$place/apt.conf apt-get "$@"
}

unpack() {
    local package packages=(
        rustc-web libstd-rust-web-$debian_rust libstd-rust-web-dev libllvm22
        libstd-rust-web-dev:i386 libstd-rust-web-dev:s390x qemu-user-static
    )
    for package in i686:i386 s390x:s390x; do
        packages+=({gcc-12,cpp-12,binutils}-"${package%:*}-linux-gnu")
        packages+=({libc6,libc6-dev,libgcc-12-dev,libgcc-s1}-"${package#*:}-cross")
    done
    rm -rf "$root" "$place/debs"
    mkdir -p "$root" "$place"/{debs,lists/partial,cache/archives/partial}
    echo "deb [signed-by=$keys] http://deb.debian.org/debian bookworm main" >"$place/sources.list"
    echo "deb [signed-by=$keys] http://deb.debian.org/debian-security bookworm-security main" >>"$place/sources.list"
    cat >"$place/apt.conf" <<END
Dir::State::Lists "$place/lists";
Dir::State::status "/dev/null";
Dir::Cache "$place/cache";
Dir::Etc::SourceList "$place/sources.list";
Dir::Etc::SourceParts "/dev/null";
APT::Architectures { "amd64"; "i386"; "s390x"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
END
    { debian update && (cd "$place/debs" && debian download "${packages[@]}"); } >"$place/apt.log" 2>&1 || return 1
    for package in "$place"/debs/*.deb; do
        dpkg -x "$package" "$root" >>"$place/apt.log" 2>&1 || return 1
    done
    # They are unpacked, and twice as large.
    rm -rf "$place/debs" "$place/lists" "$place/cache"
    touch "$place/unpacked"
}

# An executable that runs another one with the libraries that it needs.
wrap() {
    printf '#!/bin/sh\n%s exec %s "$@"\n' "LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu PATH=$root/usr/bin:\$PATH" "$2" \
        >"$place/$1"
    chmod +x "$place/$1"
}

[ -e "$place/unpacked" ] || unpack || skip "the packages cannot be had: $(tail -n 1 "$place/apt.log")"
wrap rustc "$root/usr/bin/rustc"
libraries=$root/usr/i686-linux-gnu/lib
# What is linked knows where its libraries are: with a runner, current_exe() would be that, and no test its own child.
wrap link-i686 "$root/usr/bin/i686-linux-gnu-gcc-12 --sysroot=$root -Wl,--dynamic-linker=$libraries/ld-linux.so.2 \
-Wl,-rpath=$libraries"
wrap link-s390x "$root/usr/bin/s390x-linux-gnu-gcc-12 --sysroot=$root"

export RUSTC=$place/rustc CARGO_TARGET_DIR=$place/target CARGO_TERM_COLOR=never
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=$place/link-i686
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=$place/link-s390x
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="$root/usr/bin/qemu-s390x-static -L $root/usr/s390x-linux-gnu"

version=$("$RUSTC" --version | cut -d ' ' -f 2)
cargo check --locked --all-features
printf 'figure 9.5: Rust %s builds the library with all features\n' "$version"

# Building takes longer than running, even under qemu: no debug information, and no more optimisation than pays.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_TEST_LTO=off
# Under qemu a minute is not yet a hang.
export CUCKOO_PATIENCE=900

# What a short run has time for.
short=(snapshot_golden snapshot_round_trip snapshot_refused model builder serde)
# They measure memory or time, or work for minutes on a machine of one's own.
left_out=(snapshot_memory stress rates capacity)
# Single tests that are left out, as arguments for their programs: each by its whole name.
skipped=()

on() {
    local id=$1 target=$2 said=$3 log=$place/$2.log began=$SECONDS tests=(--lib) test passed which
    for test in tests/*.rs; do
        test=$(basename "$test" .rs)
        case $what in
            full) [[ " ${left_out[*]} " == *" $test "* ]] || tests+=(--test "$test") ;;
            short) [[ " ${short[*]} " != *" $test "* ]] || tests+=(--test "$test") ;;
        esac
    done
    cargo test --locked --no-fail-fast --all-features --target "$target" "${tests[@]}" -- "${skipped[@]}" >"$log" 2>&1 ||
        { grep -a -A 8 '^error\|panicked at' "$log" | head -n 60 || true; tail -n 20 "$log"; exit 1; }
    passed=$(awk '/^test result: ok/ { sum += $4 } END { print sum + 0 }' "$log")
    [ "$passed" -gt 0 ] || { tail -n 20 "$log"; exit 1; }
    case $what in
        full) which="all but ${#left_out[@]} programs and $((${#skipped[@]} / 2)) tests that the script names" ;;
        short) which='the short form' ;;
    esac
    printf 'figure %s: %s: %s tests passed, %s, with Rust %s in %s s\n' "$id" "$said" "$passed" "$which" "$version" \
        $((SECONDS - began))
}

on 9.6 i686-unknown-linux-gnu '32 bits (i386)'

# They start themselves as another process, and the kernel does not run what is made for s390x.
left_out+=(faults_memory snapshot_crash)
skipped+=(--skip four_processes_build_one_filter)
# Many minutes under qemu each: threads that meet by chance, which there says nothing of another processor's memory, and
# millions of keys, of which others like these take fewer.
for test in corrupted_histories_are_refused what_real_threads_say_can_be_explained \
    a_batch_of_a_million_does_what_a_loop_does an_overfull_load_fills_the_filter_and_names_what_it_refused \
    many_keys_are_treated_as_by_a_loop_on_any_pool many_keys_are_treated_as_by_a_loop_out_of_cache; do
    skipped+=(--skip "$test")
done
on 9.7 s390x-unknown-linux-gnu 'highest byte first (s390x, under qemu)'
