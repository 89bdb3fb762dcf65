#!/usr/bin/env bash
# Histories of operations on threads that shuttle switches, each checked for an order that explains it
# (tests/internal/linearizability).
#
#   ci/schedules.sh              20,000 schedules and 100,000 drills (10 seconds, and a minute for the first build)
#   ci/schedules.sh full         250,000 schedules and 2,000,000 drills, and all the teeth (a quarter of an hour)
#   ci/schedules.sh teeth NAME...
#                                these teeth only, named as their files without .patch
#
# Half of the schedules are of 4 threads with 8 operations each, half of 8 with 12; half are drawn at random, half by
# priorities. A drill is three threads that are after one key, with 2 operations each, by priorities. The same ones come
# each time. A failure names its scenario, and CUCKOO_SCENARIO=N begins there.
#
# A tooth, loom-tests/teeth/NAME.patch, breaks src/ by hand. The short form must find each of them, or else the full one,
# within the time limit, unless the tooth says why they cannot: "schedules: no, REASON". Not found means: it does not
# apply, it does not compile, or all histories can be explained. Assertions of src/ are left out there: it is the
# histories that must show it.
#
# Needs cargo, git and coreutils. Everything it makes is in target/schedules.

set -euo pipefail

seconds_for_a_catch=900

cd "$(dirname "$0")/.."
source ci/tool.sh

what=${1-short}
case $what in
    short | full) [ $# -le 1 ] || fail "too many arguments; see --help" ;;
    teeth) [ $# -ge 2 ] || fail "teeth needs names; see --help" ;;
    -h | --help) usage && exit ;;
    *) fail "unknown argument $what; see --help" ;;
esac

target=$PWD/target/schedules
copy=$target/tooth
mkdir -p "$target"
# As in ci/loom.sh.
export CARGO_INCREMENTAL=1 CARGO_TARGET_DIR=$target RUSTFLAGS='--cfg cuckoo_shuttle' CARGO_TERM_COLOR=never
unset CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS RUST_BACKTRACE CUCKOO_FULL

histories() {
    cargo test --quiet --profile loom --lib internal::linearizability::schedules "$@"
}

explore() {
    local log=$target/schedules.log schedules=0 line
    histories -- --nocapture --test-threads=2 2>&1 | tee "$log" || fail 'a history cannot be explained'
    while read -r line; do
        schedules=$((schedules + line))
    done < <(sed -n 's/^schedules .*: \([0-9]*\) of .*/\1/p' "$log")
    [ "$schedules" -ge "$1" ] || fail "$schedules of $1 schedules ran"
    printf 'figure 1.2: %s schedules, 0 histories that no order explains; %s s\n' "$(thousands "$schedules")" $SECONDS
}

# One tooth. Says what is wrong with it and returns 1.
pull() {
    local patch=$1 name log reason
    name=$(basename "$patch" .patch)
    log=$target/tooth-$name.log
    reason=$(sed -n '/^--- /q; s/^schedules: no, //p' "$patch")
    if [ -n "$reason" ]; then
        printf 'tooth %-44s is not for schedules: %s\n' "$name" "$reason"
        beyond=$((beyond + 1))
        return
    fi
    if ! break_copy "$copy" "$patch" "$log" || ! (cd "$copy" && histories --no-run) >"$log" 2>&1; then
        printf 'tooth %-44s does not apply or does not compile:\n' "$name"
        cat "$log"
        return 1
    fi
    if finds '' "$log"; then
        by_few=$((by_few + 1))
    elif finds 1 "$log"; then
        by_many=$((by_many + 1))
    else
        printf 'tooth %-44s was not found\n' "$name"
        return 1
    fi
    printf 'tooth %-44s found: %s\n' "$name" "$(grep -o -m 1 '[^ ]* .*: failed in scenario .*' "$log")"
}

# Whether the schedules find what is wrong with the copy: the short form, or with $1 the full one.
finds() {
    local status=0 form=()
    [ -z "$1" ] || form=(CUCKOO_FULL=1)
    (cd "$copy" && env "${form[@]}" timeout --kill-after=5 $seconds_for_a_catch \
        cargo test --quiet --profile loom --lib internal::linearizability::schedules) >"$2" 2>&1 || status=$?
    # The time limit is no finding, nor is a process that ends without a word.
    [ $status -ne 0 ] && grep -q 'failed in scenario' "$2"
}

if [ "$what" = full ]; then
    CUCKOO_FULL=1 explore 2250000
    set -- teeth
    for patch in loom-tests/teeth/*.patch; do
        set -- "$@" "$(basename "$patch" .patch)"
    done
elif [ "$what" = short ]; then
    explore 120000
    exit
fi

shift
export CARGO_PROFILE_LOOM_DEBUG_ASSERTIONS=false CARGO_PROFILE_LOOM_OVERFLOW_CHECKS=false
by_few=0 by_many=0 beyond=0 missed=()
for name in "$@"; do
    patch=$PWD/loom-tests/teeth/$name.patch
    [ -e "$patch" ] || fail "there is no tooth $name"
    pull "$patch" || missed+=("$name")
done
rm -rf "$copy"
[ ${#missed[@]} -eq 0 ] || fail "${#missed[@]} of $# teeth were not found: ${missed[*]}"
[ "$what" = teeth ] ||
    printf 'figure 1.3: %s teeth found by the short form, %s more by the full one, 0 missed; %s are not for schedules\n' \
        $by_few $by_many $beyond
