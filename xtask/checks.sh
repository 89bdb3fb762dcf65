#!/usr/bin/env bash
# The checks of `cargo xtask` that are commands: xtask/checks.sh CHECK [OPTION], as `cargo xtask help` lists them. They print lines
# "figure ROW: TEXT" for docs/reliability.md, and "skipped: ..." where a tool or a toolchain cannot be had. What they make is in
# target/.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
x86=x86_64-unknown-linux-gnu
export CARGO_INCREMENTAL=0
exec 3>&1

# Runs a function with these arguments, and shows its output if it fails.
check() {
    local log status
    log=$(mktemp)
    SECONDS=0
    set +e
    (set -e; "$@") &>>"$log"
    status=$?
    set -e
    case $status in
        0) ;;
        77) echo "skipped: ${*:1:2}: $(tail -n 1 "$log")" ;;
        *) cat "$log"; echo "failed: ${*:1:2}"; exit 1 ;;
    esac
    rm "$log"
}

skip() { echo "$*"; exit 77; }
figure() { echo "figure $*" >&3; }
thousands() { sed -E ':a; s/\B[0-9]{3}\b/,&/; ta'; }
shown() { tee -a /dev/stderr; }
# The sum of a number of the lines that a pattern matches; none is an error.
sum() { shown | awk -v field="$2" "/$1/ { n += \$field } END { print n + 0; exit !n }" | thousands; }
passed() { sum '^test result: ok\.' 4; }
host() { rustc "$@" -vV | sed -n 's/^host: //p'; }
needs_x86() {
    local host
    host=$(host "$@")
    [ "$host" = "$x86" ] || skip "this takes $x86"
}
# Reads the whole list: a pipe whose reader stops early has failed.
nightly() { rustup toolchain list | grep ^nightly- || skip "no toolchain nightly-* is installed"; }
add_target() { rustup target add "$1" || skip "rustup cannot add the target $1"; }

# Puts a cargo subcommand of this version on the PATH, from target/tools, where it stays, unless it is there. It is built without
# optimisation, in a fraction of the time, and in one folder with the others, with which it shares dependencies.
tool() {
    if [[ $(cargo "${1#cargo-}" --version 2>/dev/null | head -n 1) == *" $2" ]]; then return; fi
    local root=$target/tools/$1-$2
    PATH=$root/bin:$PATH
    if [ -e "$root/bin/$1" ]; then return; fi
    CARGO_TARGET_DIR=$target/tools/build CARGO_PROFILE_DEV_DEBUG=0 \
        cargo install "$1" --debug --locked --version "$2" --root "$root" || skip "$1 $2 cannot be installed"
}

# Lint: what may rot unseen. ----------------------------------------------------------------------------------------------------

# Of packages that are not published, too.
sources() {
    # shellcheck disable=SC2046
    sources=$(grep '^source = ' $(git ls-files '*Cargo.lock'))
    ! grep -vF '"registry+https://github.com/rust-lang/crates.io-index"' <<<"$sources"
}

licences() {
    tool cargo-deny 0.20.2
    cargo deny --locked check licenses bans sources
    linked=$(cargo tree --locked -p concurrent-cuckoo-filter --all-features --edges normal --prefix none --no-dedupe | sort -u | wc -l)
    figure "9.3: all licences are allowed by deny.toml, all sources are crates.io; $((linked - 1)) dependencies are linked"
}

unused_dependencies() {
    tool cargo-machete 0.9.2
    cargo machete
    packages=$(git ls-files --cached --others --exclude-standard Cargo.toml '*/Cargo.toml' | wc -l)
    figure "9.2: 0 unused dependencies in $packages packages"
}

# Every set of features; in short, each feature alone, all but each, none and all. clippy says what the compiler says, and denies
# warnings in this crate alone.
features() {
    local all sets=('') feature set
    mapfile -t all < <(sed -n '/^\[features\]/,/^\[package/s/^\([^# ]*\) = .*/\1/p' Cargo.toml | grep -vx default)
    [ "${#all[@]}" -ge 5 ]
    if [ "${1:-}" = --full ]; then
        for feature in "${all[@]}"; do sets+=("${sets[@]/%/ $feature}"); done
    else
        for feature in "${all[@]}"; do sets+=("$feature" "${all[*]/#$feature/}"); done
        sets+=("${all[*]}")
    fi
    for set in "${sets[@]}"; do
        cargo clippy --locked --lib --no-default-features --features "$set" -- -D warnings
    done
    figure "9.1: ${#sets[@]} sets of features build without a warning"
}

# Without features, and with those that need no system.
web_assembly() {
    add_target wasm32-unknown-unknown
    for features in '' snapshot,serde; do
        cargo build --locked --lib --target wasm32-unknown-unknown --no-default-features --features "$features"
    done
    figure "9.8: wasm32-unknown-unknown is built without features, and with snapshots"
}

# What is compiled for other processors than x86-64 only, such as the fence behind a writer. No linker is needed.
aarch64() {
    add_target aarch64-unknown-linux-gnu
    cargo clippy --locked --lib --all-features --target aarch64-unknown-linux-gnu -- -D warnings
    figure "9.11: aarch64-unknown-linux-gnu builds the library with all features, without a warning"
}

# What users get: the links of its pages lead to files in it, and its tests compile.
package() {
    rm -rf "$target/package"
    cargo package --locked --allow-dirty --no-verify -p concurrent-cuckoo-filter
    packed=$(ls "$target"/package/*.crate)
    tar -xzf "$packed" -C "$target/package"
    cd "${packed%.crate}"
    files=$(find . -type f | wc -l)
    targets=$(grep -roP --include='*.md' '\]\(\K(?!#|[^)]*://)[^)#]+' .)
    while IFS=: read -r page link; do
        [ -f "$(dirname "$page")/$link" ] || { echo "$page leads to $link, which is not in the package"; exit 1; }
    done <<<"$targets"
    # In a workspace of its own: it lies in the folder of this one.
    echo '[workspace]' >>Cargo.toml
    CARGO_TARGET_DIR=$target cargo check --all-features --all-targets
    figure "9.9: the package has $files files, its tests compile; $(wc -l <<<"$targets") links of its pages lead to files in it"
}

# The public API is listed in a file so that a change shows in review.
api=docs/public-api.txt
list_public_api() {
    nightly
    cargo +nightly rustdoc --locked --lib --all-features -- -Zunstable-options --output-format=json
    {
        rustc +nightly --version | cut -d' ' -f1-2
        cargo xtask list-api "$target/doc/concurrent_cuckoo_filter.json"
    } >"$target/public-api.txt"
}

public_api() {
    list_public_api
    # Versions of rustdoc and std name some types by other paths.
    [ "$(head -1 "$api")" = "$(head -1 "$target/public-api.txt")" ] || skip "$api is of the nightly toolchain with $(head -1 "$api")"
    diff "$api" "$target/public-api.txt" || { echo "if that is meant: cargo xtask lint --write"; exit 1; }
    figure "9.4: the public API is the one that $api lists, $(wc -l <"$api" | thousands) lines"
}

write_public_api() {
    list_public_api
    cp "$target/public-api.txt" "$api"
}

# What the listing of the branch `main` has, and this one has not, breaks users' code: a line of the changelog must say so.
semver() {
    before=$(git show "main:$api") && changes=$(git show main:CHANGELOG.md) || skip "there is no branch main with a listing"
    gone=$(grep -vxFf "$api" <<<"$before") || [ $? -eq 1 ]
    if [ -n "$gone" ] && ! grep -vxFf <(echo "$changes") CHANGELOG.md | grep '^- (BREAKING'; then
        echo "$gone"
        echo "These lines are gone, and no new line of CHANGELOG.md begins with (BREAKING)"
        exit 1
    fi
    figure "9.10: $(grep -c . <<<"$gone" || true) lines of the public API of main are gone"
}

# Where that is not installed, clippy (incompatible_msrv) has checked what is used of std.
oldest_rust() {
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    [ -n "$version" ]
    toolchains=$(rustup toolchain list | grep -o "^$version[-.][^ ]*") || skip "no toolchain $version* is installed"
    cargo "+${toolchains%%$'\n'*}" check --locked --all-features
    figure "9.5: Rust $version builds the library with all features"
}

# The tests of the library, built otherwise or run on another machine. ----------------------------------------------------------

# Lines of src/ without its tests, by the tests of the library with all features, without doctests.
coverage() {
    tool cargo-tarpaulin 0.37.5
    said=$(CARGO_TARGET_DIR=$target/coverage cargo tarpaulin --engine llvm --locked --packages concurrent-cuckoo-filter \
        --all-features --skip-clean --include-files 'src/*' --timeout 900 --out Stdout --color Never --lib --tests \
        --fail-under 95 -- --include-ignored | shown)
    sed -n '/^|| Uncovered Lines:/,/Total Lines:/p' <<<"$said" >&3
    [[ $said =~ ([0-9.]+)%\ coverage,\ ([0-9]+)/([0-9]+)\ lines ]]
    figure "8.2: tests run ${BASH_REMATCH[2]} of ${BASH_REMATCH[3]} lines of src/, ${BASH_REMATCH[1]} %, in $SECONDS s"
}

# AddressSanitizer and LeakSanitizer. Reads in inline assembly (src/sys/unaligned.rs) are not instrumented; debug builds check where
# they lie.
asan() {
    nightly
    needs_x86 +nightly
    # The library of the sanitizer comes with the toolchain, and std is used as it is, not built anew.
    [ -e "$(rustc +nightly --print target-libdir)/librustc-nightly_rt.asan.a" ] || skip "the toolchain has no AddressSanitizer"
    export CARGO_TARGET_DIR=$target/asan RUSTFLAGS=-Zsanitizer=address CARGO_PROFILE_TEST_DEBUG=line-tables-only
    # Memory that cannot be had is an error to be returned: tests ask for it.
    export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
    # With a target, what runs while building is built without the sanitizer.
    count=$(cargo +nightly test --locked --package concurrent-cuckoo-filter --all-features --lib --tests --target "$x86" \
        -- --include-ignored 2>&1 | passed)
    figure "8.7: $count tests passed with AddressSanitizer and LeakSanitizer, 0 reports, in $SECONDS s"
}

# The code that ships, on a few threads, under the memory model of a machine that reorders more than x86-64.
miri() {
    nightly
    cargo +nightly miri --version || skip "the nightly toolchain has no Miri: rustup +nightly component add miri rust-src"
    export CARGO_TARGET_DIR=$target/miri
    export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-preemption-rate=0.1 -Zmiri-many-seeds=0..32"
    cargo +nightly miri test --locked --lib --target aarch64-unknown-linux-gnu -- few_threads
    figure "8.8: 32 seeds on aarch64 under Miri, 0 findings, in $SECONDS s"
}

# They work for minutes.
long=(stress:: rates:: capacity::)
# Not under qemu: tests that start themselves as another process, threads that meet by chance, which there says nothing of another
# processor's memory, and millions of keys, of which others like these take fewer.
not_under_qemu=(
    snapshot::crash:: four_processes_build_one_filter corrupted_histories_are_refused what_real_threads_say_can_be_explained
    an_overfull_load_fills_two_shards many_keys_are_treated_as_by_a_loop
    sorted_lookups_are_answered_in_the_order_of_the_caller
)

# The row, the processor, what it is, the program that runs what is built for it, the tests, and which of them are left out.
machine() {
    local row=$1 processor=$2 name=$3 runner=$4 tests=$5 without=("${@:6}")
    needs_x86
    for program in "$processor-linux-gnu-gcc" ${runner%% *}; do
        "$program" --version || skip "no $program; in Debian: apt-get install gcc-$processor-linux-gnu" \
            "libc6-dev-$processor-cross libc6-i386 lib32gcc-s1 qemu-user-static"
    done
    add_target "$processor-unknown-linux-gnu"
    variable=CARGO_TARGET_${processor^^}_UNKNOWN_LINUX_GNU
    export "${variable}_LINKER=$processor-linux-gnu-gcc" ${runner:+"${variable}_RUNNER=$runner"}
    # Building takes longer than running, even under qemu: no debug information, and no more optimisation than pays. Under qemu a
    # minute is not yet a hang.
    export CARGO_TARGET_DIR=$target/machines CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=1 CUCKOO_PATIENCE=900
    # shellcheck disable=SC2086
    count=$(cargo test --locked --no-fail-fast --all-features --target "$processor-unknown-linux-gnu" $tests \
        -- --include-ignored "${without[@]/#/--skip=}" 2>&1 | passed)
    figure "$row: $name: $count tests passed, all but what measures memory and ${#without[@]} groups of tests that xtask names," \
        "with Rust $(rustc --version | cut -d ' ' -f 2) in $SECONDS s"
}

# Fuzzing: sequences of operations against an exact model, and snapshots with defects under checksums that match. -----------------

# The row, the target, its longest input (some 30 operations, or a snapshot of one shard with room for defects), the sanitizer, the
# number of processes, and the limit of each.
fuzz() {
    local row=$1 name=$2 longest=$3 sanitizer=$4 processes=$5 limit=$6
    nightly
    tool cargo-fuzz 0.13.2
    # Comparisons are not traced: that would take most of the time, and the inputs are made so that each byte counts.
    CARGO_TARGET_DIR=$target/fuzz cargo +nightly fuzz build --no-trace-compares --sanitizer "$sanitizer" "$name"
    # The corpus is where it begins; what it adds is of this run.
    rm -rf "$target/fuzz/added"
    seq -f "$target/fuzz/added/%g" "$processes" | xargs mkdir -p "fuzz/artifacts/$name"
    SECONDS=0
    runs=$(printf '%s\n' "$target"/fuzz/added/* | xargs -P 0 -I '{}' "$target/fuzz/$(host +nightly)/release/$name" "$limit" \
        "-max_len=$longest" "-artifact_prefix=fuzz/artifacts/$name/" '{}' "fuzz/corpus/$name" 2>&1 | sum '^Done ' 2)
    figure "$row: target $name, sanitizer $sanitizer: $runs executions in $SECONDS s, 0 findings"
}

case "${1:-} ${2:-}" in
    "lint --write") check write_public_api ;;
    "lint --full" | "lint ")
        # What only a change of dependencies can break: for the full form, since their tools take minutes to install.
        if [ -n "${2:-}" ]; then
            check licences
            check unused_dependencies
        fi
        check features "${2:-}"
        for lint in sources web_assembly aarch64 package public_api semver oldest_rust; do check "$lint"; done
        ;;
    "coverage " | "asan " | "miri ") check "$1" ;;
    "machines ")
        # An x86-64 processor runs i386 by itself.
        check machine 9.6 i686 "32 bits (i386)" "" "--lib --test it --test refused_memory" "${long[@]}"
        check machine 9.7 s390x "highest byte first (s390x, under qemu)" "qemu-s390x-static -L /usr/s390x-linux-gnu" \
            "--lib --test it" "${long[@]}" "${not_under_qemu[@]}"
        ;;
    fuzz\ *)
        seconds=${2:-120}
        if [ "$seconds" = --full ]; then
            seconds=240 processes=$(nproc)
            limit=-runs=$(((20000000 + processes - 1) / processes))
            check fuzz 8.3 operations 64 none "$processes" "$limit"
            check fuzz 8.4 snapshot 1024 none "$processes" "$limit"
        fi
        # For both targets together.
        limit=-max_total_time=$(((seconds + 1) / 2))
        check fuzz 8.5 operations 64 address 1 "$limit"
        check fuzz 8.6 snapshot 1024 address 1 "$limit"
        ;;
    # The PATH on which there is a tool.
    tool\ *) tool "$2" "$3" >&2 && echo "$PATH" ;;
    *) echo "no such check or option: cargo xtask help"; exit 2 ;;
esac
