#!/usr/bin/env bash
# The library's tests where a number has 32 bits (i386), and where its highest byte comes first (s390x), with the oldest
# Rust that the crate supports.
#
#   ci/other-machines.sh         unit tests, golden files, snapshots, and operations against a multiset (some minutes)
#   ci/other-machines.sh full    all tests but those that measure or load a machine for minutes (most of an hour)
#
# Debian 12 has Rust 1.85 for both as rustc-web. From Debian's mirror it takes that, cross linkers and qemu, 320 MB, and
# unpacks them in target/other-machines: nothing is installed, and root is not needed. i386 runs by itself on an x86-64
# processor, s390x under qemu, which is some ten times slower. Where apt, the mirror or the processor is another one,
# that is said and nothing is run.

set -euo pipefail
cd "$(dirname "$0")/.."
. ci/tool.sh

case ${1-short} in
    short | full) what=${1-short} ;;
    *) usage >&2 && exit 2 ;;
esac

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
        rustc-web libstd-rust-web-1.85 libstd-rust-web-dev libllvm19
        libstd-rust-web-dev:i386 libstd-rust-web-dev:s390x qemu-user-static
    )
    for package in i686:i386 s390x:s390x; do
        packages+=({gcc-12,cpp-12,binutils}-"${package%:*}-linux-gnu")
        packages+=({libc6,libc6-dev,libgcc-12-dev,libgcc-s1}-"${package#*:}-cross")
    done
    rm -rf "$root" "$place/debs"
    mkdir -p "$root" "$place"/{debs,lists/partial,cache/archives/partial}
    echo "deb [signed-by=$keys] http://deb.debian.org/debian bookworm main" >"$place/sources.list"
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
        dpkg -x "$package" "$root"
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
wrap link-i686 "$root/usr/bin/i686-linux-gnu-gcc-12 --sysroot=$root"
wrap link-s390x "$root/usr/bin/s390x-linux-gnu-gcc-12 --sysroot=$root"

libraries=$root/usr/i686-linux-gnu/lib
export RUSTC=$place/rustc CARGO_TARGET_DIR=$place/target CARGO_TERM_COLOR=never
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=$place/link-i686
export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUNNER="$libraries/ld-linux.so.2 --library-path $libraries"
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=$place/link-s390x
export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="$root/usr/bin/qemu-s390x-static -L $root/usr/s390x-linux-gnu"

version=$("$RUSTC" --version | cut -d ' ' -f 2)
cargo check --locked --all-features
printf 'figure 9.5: Rust %s builds the library with all features\n' "$version"

# Those that take part in what is said of other machines, and what a short run has time for.
tests=(--lib)
short=(snapshot_golden snapshot_round_trip snapshot_refused model builder serde)
for test in tests/*.rs; do
    test=$(basename "$test" .rs)
    case $what,$test in
        # They measure memory or time, or work for minutes on a machine of one's own.
        full,snapshot_memory | full,stress | full,rates | full,capacity) ;;
        full,*) tests+=(--test "$test") ;;
        short,*) [[ " ${short[*]} " != *" $test "* ]] || tests+=(--test "$test") ;;
    esac
done

on() {
    local id=$1 target=$2 said=$3 log=$place/$2.log began=$SECONDS passed
    cargo test --locked --all-features --target "$target" "${tests[@]}" >"$log" 2>&1 ||
        { grep -A 8 '^error\|panicked at' "$log" | head -n 60 && exit 1; }
    passed=$(awk '/^test result: ok/ { sum += $4 } END { print sum + 0 }' "$log")
    printf 'figure %s: %s: %s tests passed with Rust %s in %s s\n' "$id" "$said" "$passed" "$version" $((SECONDS - began))
}

on 9.6 i686-unknown-linux-gnu '32 bits (i386)'
on 9.7 s390x-unknown-linux-gnu 'highest byte first (s390x, under qemu)'
