#!/usr/bin/env bash
# Mutation testing: operators, conditions and results of the library are changed, one at a time, and some test must fail.
#
#   ci/mutants.sh             all mutants (hours on 2 cores). Stopped and started again, it goes on where it was
#   ci/mutants.sh FILE...     those of these files, such as src/raw/table.rs
#   ci/mutants.sh --quick     a few of the heart, by name
#
# Five stages, each for what the one before it missed: unit tests; some quick ones of the public face; slower ones of
# them; all tests, as users run them; the models of loom. Each core has a copy of the tree for itself. What is left out,
# and why, is in .cargo/mutants.toml.
#
# Needs cargo and git; cargo-mutants is installed into the target directory unless it is on the PATH. What came of each
# mutant is in target/mutants, beside the copies of the tree that are changed.

set -euo pipefail

# Runs a binary of tests up to its first failure; cargo is told to run them so, where it runs them. A mutant that fails
# one test and has another one run for ever is caught at once.
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

cd "$(dirname "$0")/.."
# shellcheck source=ci/tool.sh
source ci/tool.sh

quick_only=
case ${1-} in
    --quick) quick_only=1 && shift ;;
    -h | --help) usage && exit ;;
    -*) fail "unknown option $1; see --help" ;;
esac
files=("${@/#/--file=}")

tool cargo-mutants 27.1.0 || skip 'mutants'
root=$PWD
target=$(target_directory)/mutants
out=$target/all
workers=$(nproc)
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS RUST_BACKTRACE
export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=1 CARGO_PROFILE_TEST_DEBUG=false
host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
until_failure="CARGO_TARGET_${host}_RUNNER=$root/ci/mutants.sh --until-failure"

mkdir -p "$out"
for ((worker = 0; worker < workers; worker++)); do
    copy_tree "$target/tree.$worker"
done

# Becomes cargo-mutants for the copy of one worker: mutants WORKER ARGUMENTS...
mutants() {
    export CARGO_TARGET_DIR=$target/build.$1
    exec cargo mutants --dir "$target/tree.$1" --in-place --no-shuffle \
        --cargo-arg=--locked --all-features "${@:2}"
}
list() { cargo mutants --dir "$target/tree.0" --list "${files[@]}" "$@"; }

# Tries the mutants that nothing has settled, and that this stage has not missed: stage NAME ENVIRONMENT... --
# ARGUMENTS... Tests that take five times as long as without a mutant, and a minute at least, are taken to hang.
stage() {
    local name=$1 environment=() worker pids=() code
    shift
    while [ "$1" != -- ]; do environment+=("$1") && shift; done
    shift
    printf '\n-- %s\n' "$name"
    gather
    printf '%s' "$name" >"$out/stage"
    touch "$out/missed by $name"
    sort -u "$out"/{caught,timeout,unviable}.txt "$out/missed by $name" >"$out/passed by"
    [ "$(list | sort -u | comm -13 "$out/passed by" - | wc -l)" -gt 0 ] || return 0
    for ((worker = 0; worker < workers; worker++)); do
        # What --iterate reads.
        cp "$out/passed by" "$out/$worker/mutants.out/previously_caught.txt"
        (
            [ ${#environment[@]} -eq 0 ] || export "${environment[@]}"
            mutants "$worker" --timeout-multiplier 5 --minimum-test-timeout 60 --iterate --output "$out/$worker" \
                --shard "$worker/$workers" --sharding round-robin "${files[@]}" "$@"
        ) &
        pids+=($!)
    done
    for worker in "${!pids[@]}"; do
        code=0
        wait "${pids[worker]}" || code=$?
        # 2: some were missed; 3: some took too long. Anything else, such as a test that fails without a mutant, is
        # wrong.
        case $code in 0 | 2 | 3) ;; *) fail "$name: cargo-mutants ended with $code" ;; esac
    done
    gather
}

# Gathers what came of the mutants in a stage that has ended, or that was stopped.
gather() {
    local worker kind name
    name=$(cat "$out/stage" 2>/dev/null || echo none)
    for kind in caught timeout unviable missed; do
        for ((worker = 0; worker < workers; worker++)); do
            mkdir -p "$out/$worker/mutants.out"
            # What does not compile for a model has been compiled before.
            [ "$name $kind" = 'models unviable' ] || cat "$out/$worker/mutants.out/$kind.txt" 2>/dev/null || true
            rm -f "$out/$worker/mutants.out/$kind.txt"
        done >"$out/gathered"
        case $kind in
            missed) cat "$out/gathered" >>"$out/missed by $name" ;;
            *) cat "$out/gathered" >>"$out/$kind.txt" ;;
        esac
    done
}

if [ -n "$quick_only" ]; then
    names=(
        'replace & with \^ in Lanes::equal$'
        'replace \+ with \* in advance$'
        'delete ! in Locked.*::bump$'
        'replace == with != in VersionRef.*::is_still$'
        'replace \| with & in RawFilter::look$'
        'replace > with >= in Shard.*::remove_locked$'
        'replace Shard.*::relocate -> Option<Slot> with None$'
    )
    out=$target/quick
    rm -rf "$out"
    # Tests that fail without a mutant are for others to find.
    export PROPTEST_CASES=8 CARGO_PROFILE_TEST_OPT_LEVEL=0 "${until_failure?}"
    (mutants 0 --baseline skip --timeout 60 --output "$out" --cargo-arg=--lib \
        --file src/layout/lanes.rs --file 'src/raw/*.rs' "${names[@]/#/--re=}" \
        -- -- lanes:: raw:: stalled_writer::) || fail 'not all were caught'
    for name in "${names[@]}"; do
        grep -qE "$name" "$out/mutants.out/caught.txt" || fail "no mutant is called $name any longer: choose another one"
    done
    caught=$(wc -l <"$out/mutants.out/caught.txt")
    printf 'figure 8.1: %s of %s mutants of the heart caught\n' "$caught" "$caught"
    exit
fi

# What came of mutants of other code is worth nothing.
state=$(cd "$target/tree.0" && find Cargo.toml Cargo.lock .cargo src tests loom-tests -type f | sort | xargs cat | cksum)
if [ "$state $workers" != "$(cat "$out/state" 2>/dev/null || true)" ]; then
    rm -rf "$out"
    mkdir -p "$out"
    printf '%s\n' "$state $workers" >"$out/state"
fi
# A copy is laid anew by the next run: nobody must be at work there.
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT

# Those that the second half of the list leaves out: each of its entries must leave out something, for lines move.
sed '/^    # Equivalent/,/^]/d' .cargo/mutants.toml >"$out/with-equivalents.toml"
printf ']\n' >>"$out/with-equivalents.toml"
list --config "$out/with-equivalents.toml" | sort -u >"$out/list-with-equivalents"
while IFS= read -r entry; do
    [ ${#files[@]} -gt 0 ] || grep -qP -- "$entry" "$out/list-with-equivalents" ||
        fail ".cargo/mutants.toml leaves out what is not there: $entry"
done < <(sed -n "/^    # Equivalent/,/^]/ s/^    '\(.*\)',$/\1/p" .cargo/mutants.toml)

# With little or no optimisation: a mutant is compiled in a fraction of the time, which is what most of them cost.
quick=("$until_failure" PROPTEST_CASES=8 CARGO_PROFILE_TEST_OPT_LEVEL=0)
stage 'unit tests' "${quick[@]}" RUST_TEST_THREADS=1 -- --cargo-arg=--lib -- -- \
    "${without_slow_tests[@]}" --skip=two_filters
some=(builder debug model refused_memory serde snapshot_{damage,file,golden,header,parts,refused,replay})
stage 'tests of the public face' "${quick[@]}" -- "${some[@]/#/--cargo-arg=--test=}"
some=(faults_{capacity,panics,rayon,snapshots} merge snapshot_{churn,memory,parallel,round_trip} stats)
stage 'slower ones of them' "${quick[@]}" -- "${some[@]/#/--cargo-arg=--test=}"
stage 'all tests' "$until_failure" CARGO_PROFILE_TEST_OPT_LEVEL=1 --
stage 'models' RUSTFLAGS='--cfg cuckoo_loom' -- --profile loom --cargo-arg=--lib -- -- loom_tests::

list | sort -u >"$out/list"
left_out=$(comm -23 "$out/list-with-equivalents" "$out/list" | wc -l)
sort -u "$out"/{caught,timeout,unviable}.txt | comm -13 - "$out/list" >"$out/missed.txt"
count() { thousands "$(cat "${@/#/$out/}" | sort -u | comm -12 - "$out/list" | wc -l)"; }
text='%s mutants: %s caught, %s of them by a test that ran too long, %s do not compile, %s missed; %s more are left out'
printf "figure 8.1: $text as equivalent\n" \
    "$(count list)" "$(count caught.txt timeout.txt)" \
    "$(count timeout.txt)" "$(count unviable.txt)" "$(count missed.txt)" "$left_out"
[ ! -s "$out/missed.txt" ] || { cat "$out/missed.txt" && fail 'the mutants above were missed'; }
