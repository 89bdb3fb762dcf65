#!/usr/bin/env bash
# Mutation testing: operators, conditions and results of the library are changed, one at a time, and some test must fail.
#
#   ci/mutants.sh             all mutants (hours on 2 cores). Stopped and started again, it goes on where it was
#   ci/mutants.sh FILE...     those of these files, such as src/table.rs
#   ci/mutants.sh --quick     a few of the heart, by name
#
# Three stages, each for what the one before it missed: the quick tests; all tests, as users run them; the models of
# loom. What is left out, and why, is in .cargo/mutants.toml.
#
# Needs cargo and git; cargo-mutants is installed into the target directory unless it is on the PATH. What came of each
# mutant is in target/mutants, beside the copy of the tree that is changed.

set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/tool.sh
source ci/tool.sh

# Runs a binary of tests up to its first failure; cargo is told to run them so. A mutant that fails one test and has
# another one run for ever is caught at once.
if [ "${1-}" = --until-failure ]; then
    shift
    exec 3< <(exec "$@" 2>&1)
    pid=$!
    while IFS= read -r line <&3; do
        printf '%s\n' "$line"
        case $line in 'test '*' FAILED') kill -KILL $pid && exit 101 ;; esac
    done
    wait $pid
    exit
fi

fail() { printf 'mutants.sh: %s\n' "$*" >&2; exit 1; }

quick=
case ${1-} in
    --quick) quick=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) fail "unknown option $1; see --help" ;;
esac
files=("${@/#/--file=}")

tool cargo-mutants 27.1.0 || skip 'mutants'
root=$PWD
target=$(target_directory)/mutants
tree=$target/tree
out=$target/all
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS RUST_BACKTRACE
export CARGO_TARGET_DIR=$target/build CARGO_TERM_COLOR=never CARGO_INCREMENTAL=1 CARGO_PROFILE_TEST_DEBUG=false
host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
until_failure="CARGO_TARGET_${host}_RUNNER=$root/ci/mutants.sh --until-failure"

copy_tree "$tree"
mkdir -p "$out"

mutants() { cargo mutants --dir "$tree" --in-place --no-shuffle --cargo-arg=--locked --all-features "$@"; }
list() { cargo mutants --dir "$tree" --list "${files[@]}" "$@"; }

# Tries the mutants that no earlier stage has settled: stage NAME SECONDS ENVIRONMENT... -- ARGUMENTS...
stage() {
    local name=$1 seconds=$2 environment=() code=0
    shift 2
    while [ "$1" != -- ]; do environment+=("$1") && shift; done
    shift
    printf '\n-- %s\n' "$name"
    (
        [ ${#environment[@]} -eq 0 ] || export "${environment[@]}"
        mutants --timeout "$seconds" --iterate --output "$out" "${files[@]}" "$@"
    ) || code=$?
    case $name in
        # A busy machine may have been the reason.
        quick*) settle caught unviable ;;
        all*) settle caught timeout unviable ;;
        # What a model does not compile with has been compiled before.
        *) settle caught timeout ;;
    esac
    # 2: some were missed; 3: some took too long. Anything else, such as a test that fails without a mutant, is wrong.
    case $code in 0 | 2 | 3) ;; *) fail "$name: cargo-mutants ended with $code" ;; esac
}

# Keeps what came of the mutants, of these kinds, and has --iterate pass by them.
settle() {
    local kind
    mkdir -p "$out/mutants.out"
    touch "$out"/{caught,timeout,unviable}.txt
    for kind in "$@"; do
        [ ! -e "$out/mutants.out/$kind.txt" ] || cat "$out/mutants.out/$kind.txt" >>"$out/$kind.txt"
        sort -u -o "$out/$kind.txt" "$out/$kind.txt"
    done
    # All else is tried again.
    rm -f "$out"/mutants.out/{caught,timeout,unviable}.txt
    settled >"$out/mutants.out/previously_caught.txt"
}

settled() { sort -u "$out"/{caught,timeout,unviable}.txt; }

if [ -n "$quick" ]; then
    names=(
        'replace & with \^ in Lanes::equal$'
        'replace \+ with \* in advance$'
        'delete ! in Locked.*::bump$'
        'replace == with != in Watch.*::is_still$'
        'replace \| with & in Shard::look_once$'
        'replace > with >= in Shard::remove_locked$'
        'replace Shard::relocate -> Option<Slot> with None$'
    )
    out=$target/quick
    rm -rf "$out"
    # Tests that fail without a mutant are for others to find.
    export PROPTEST_CASES=8 CARGO_PROFILE_TEST_OPT_LEVEL=0 "${until_failure?}"
    mutants --baseline skip --timeout 60 --output "$out" --cargo-arg=--lib \
        --file src/lanes.rs --file src/stripe.rs --file 'src/shard/*.rs' "${names[@]/#/--re=}" \
        -- -- lanes:: shard:: stopped_writer_tests:: || fail 'not all were caught'
    caught=$(wc -l <"$out/mutants.out/caught.txt")
    [ "$caught" -ge ${#names[@]} ] || fail 'a mutant is no longer there: choose another one'
    printf 'figure 8.1: %s of %s mutants of the heart caught\n' "$caught" "$caught"
    exit
fi

# What came of mutants of other code is worth nothing.
state=$(cd "$tree" && cat Cargo.toml Cargo.lock .cargo/mutants.toml src/*.rs src/*/*.rs src/*/*/*.rs tests/*.rs | cksum)
if [ "$state" != "$(cat "$out/state" 2>/dev/null || true)" ]; then
    rm -rf "$out"
    mkdir -p "$out"
    printf '%s\n' "$state" >"$out/state"
fi
settle caught
before=$(cat "$out/seconds" 2>/dev/null || echo 0)
trap 'echo $((before + SECONDS)) >"$out/seconds"' EXIT

# Without optimisation: a mutant is compiled in a fraction of the time, which is what most of them cost.
quick_tests=(builder debug merge refused_memory snapshot_golden snapshot_header snapshot_refused stats)
slow_ones=(histories storm killed_writer two_filters)
stage 'quick tests' 90 "$until_failure" PROPTEST_CASES=8 CARGO_PROFILE_TEST_OPT_LEVEL=0 -- \
    --cargo-arg=--lib "${quick_tests[@]/#/--cargo-arg=--test=}" -- -- "${slow_ones[@]/#/--skip=}"
stage 'all tests' 600 "$until_failure" --
stage 'models' 600 RUSTFLAGS='--cfg cuckoo_loom' -- --profile loom --cargo-arg=--lib -- -- loom_tests::

list | sort -u >"$out/list"
# Those that the second half of the list leaves out.
sed '/^    # Equivalent/,/^]/d' .cargo/mutants.toml >"$out/with-equivalents.toml"
printf ']\n' >>"$out/with-equivalents.toml"
left_out=$(($(list --config "$out/with-equivalents.toml" | wc -l) - $(wc -l <"$out/list")))
settled | comm -13 - "$out/list" >"$out/missed.txt"
count() { thousands "$(comm -12 "$out/list" "$out/$1" | wc -l)"; }
printf 'figure 8.1: %s mutants: %s caught, %s of them by a test that ran too long, %s do not compile, %s missed; %s more are left out as equivalent; %s h\n' \
    "$(count list)" "$(thousands "$(sort -u "$out"/{caught,timeout}.txt | comm -12 - "$out/list" | wc -l)")" \
    "$(count timeout.txt)" "$(count unviable.txt)" "$(count missed.txt)" "$left_out" \
    "$(awk "BEGIN { printf \"%.1f\", ($before + $SECONDS) / 3600 }")"
[ ! -s "$out/missed.txt" ] || { cat "$out/missed.txt" && fail 'the mutants above were missed'; }
