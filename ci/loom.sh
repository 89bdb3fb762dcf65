#!/usr/bin/env bash
# The models of the protocol, and their teeth.
#
#   ci/loom.sh            every model must pass, and every tooth must be caught (4 minutes on 2 cores)
#   ci/loom.sh --models   the models only (1 minute, half of it the first build)
#   ci/loom.sh --teeth NAME...
#                         these teeth only, named as their files without .patch; the models are not run first
#
# A model explores the interleavings of a few threads with loom, prints how many there were, and asserts 90 % of the
# committed number. A tooth, loom-tests/teeth/NAME.patch, breaks src/ by hand:
#
#   Text: what is broken, and why that must be seen.
#   caught-by: model [model...]
#   saying: text
#
#   --- a/src/...
#
# Each model named there must then fail, within the time limit, and its report must contain the text after "saying:".
# The two lines may come again, for models that say something else. A line "schedules: no, REASON" says why the schedules
# of ci/schedules.sh cannot find it. Not a catch: a patch that does not apply, code that does not compile, a model that
# takes too long or fails with other words. Every model must be named by some tooth.
#
# Needs cargo, git and coreutils. Everything it makes is in target/loom.

set -euo pipefail

seconds_for_a_catch=120
least_models=90

cd "$(dirname "$0")/.."
source ci/tool.sh
root=$PWD

what=all
chosen=()
case ${1-} in
    '') ;;
    --models) what=models ;;
    --teeth) what=teeth && shift && chosen=("$@") && [ $# -gt 0 ] || fail "--teeth needs names; see --help" ;;
    -h | --help) usage && exit ;;
    *) fail "unknown option $1; see --help" ;;
esac
[ "$what" = teeth ] || [ $# -le 1 ] || fail "too many arguments; see --help"

target=$root/target/loom
mkdir -p "$target"
# The same for all builds below, so that dependencies are compiled once; and of what a tooth leaves alone, most is not
# compiled again.
export CARGO_INCREMENTAL=1 CARGO_TARGET_DIR=$target RUSTFLAGS='--cfg cuckoo_loom' CARGO_TERM_COLOR=never
export CARGO_PROFILE_LOOM_DEBUG=false
# For teeth: a model that fails does so early, so what takes time is to compile, a tenth of it without optimisation.
unoptimised=(--config profile.loom.package.concurrent-cuckoo-filter.opt-level=0)
# Neither a limit nor a trace that somebody's shell asks for.
unset "${!LOOM_@}" CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS RUST_BACKTRACE

cargo_test() {
    cargo test --quiet --profile loom --lib "$@"
}

# Reads the names of the models into `models`: name -> path of the test function.
declare -A models=()
list_models() {
    local line path list
    list=$(cargo_test loom_tests:: -- --list) || fail "the models do not compile"
    while IFS= read -r line; do
        [[ $line == *': test' ]] || continue
        path=${line%': test'}
        [ -z "${models[${path##*::}]-}" ] || fail "two models are called ${path##*::}"
        models[${path##*::}]=$path
    done <<<"$list"
    [ ${#models[@]} -ge $least_models ] || fail "only ${#models[@]} models; there were at least $least_models"
}

run_models() {
    local log=$target/models.log ran
    # Line by line as they end: the longest take some seconds.
    cargo test --profile loom --lib loom_tests:: -- --nocapture --test-threads=2 2>&1 | tee "$log" ||
        fail "a model failed"
    [[ $(<"$log") =~ test\ result:\ ok\.\ ([0-9]+)\ passed ]] || fail "no result of the models"
    ran=${BASH_REMATCH[1]}
    [ "$ran" -eq ${#models[@]} ] || fail "$ran of ${#models[@]} models ran"
    printf '%s models passed\n' "$ran"
}

# One tooth, in a copy of the tree. Says what is wrong with it and returns 1, or notes who caught it.
pull() {
    local name=$1 copy=$2 patch names=() texts=() line model at status log catchers=()
    patch=$root/loom-tests/teeth/$name.patch
    log=$target/tooth-$name.log
    while IFS= read -r line; do
        case $line in
            caught-by:*) names+=("${line#caught-by:}") ;;
            saying:*) texts+=("${line#saying: }") ;;
            '--- '*) break ;;
        esac
    done <"$patch"
    if [ ${#names[@]} -eq 0 ] || [ ${#names[@]} -ne ${#texts[@]} ]; then
        printf 'tooth %-44s needs a line "caught-by:" and after each of them a line "saying:"\n' "$name"
        return 1
    fi

    if ! break_copy "$copy" "$patch" "$log"; then
        printf 'tooth %-44s does not apply:\n' "$name"
        cat "$log"
        return 1
    fi
    if ! (cd "$copy" && cargo_test "${unoptimised[@]}" --no-run) >"$log" 2>&1; then
        printf 'tooth %-44s does not compile:\n' "$name"
        cat "$log"
        return 1
    fi
    for at in "${!names[@]}"; do
        for model in ${names[at]}; do
            if [ -z "${models[$model]-}" ]; then
                printf 'tooth %-44s names a model that does not exist: %s\n' "$name" "$model"
                return 1
            fi
            status=0
            # A process for each: a panic that loom meets while it unwinds from another ends the process.
            (cd "$copy" && timeout --kill-after=5 $seconds_for_a_catch \
                cargo test --quiet --profile loom --lib "${unoptimised[@]}" -- --exact "${models[$model]}") >"$log" 2>&1 || status=$?
            if [ $status -eq 0 ]; then
                printf 'tooth %-44s is not caught by %s, which passed\n' "$name" "$model"
                return 1
            elif [ $status -eq 124 ] || [ $status -eq 137 ]; then
                printf 'tooth %-44s is not caught by %s within %s s\n' "$name" "$model" $seconds_for_a_catch
                return 1
            elif [[ $(<"$log") != *'panicked at'*"${texts[at]}"* ]]; then
                printf 'tooth %-44s makes %s fail, but not by saying "%s":\n' "$name" "$model" "${texts[at]}"
                cat "$log"
                return 1
            fi
            catchers+=("$model")
        done
    done
    rm "$log"
    printf '%s\n' "${catchers[@]}" >"$bites/$name"
    printf 'tooth %-44s caught by%s\n' "$name" "$(printf ' %s' "${catchers[@]}")"
}

# Every so-many-th of the chosen teeth, from this one on, with a copy of the dependencies that are built already. No
# links: a linker writes into the file that is there.
pull_some() {
    local first=$1 own=$target/worker-$1 at
    rm -rf "$own"
    mkdir "$own"
    cp -a "$target/loom" "$own"
    export CARGO_TARGET_DIR=$own
    for ((at = first; at < ${#chosen[@]}; at += workers)); do
        pull "${chosen[at]}" "$own/tooth" || true
    done
    rm -rf "$own"
}

list_models
if [ "$what" != teeth ]; then
    run_models
fi
[ "$what" != models ] || exit 0

if [ "$what" = all ]; then
    for patch in loom-tests/teeth/*.patch; do
        [ -e "$patch" ] || fail "there are no teeth"
        chosen+=("$(basename "$patch" .patch)")
    done
fi
for name in "${chosen[@]}"; do
    [ -e "loom-tests/teeth/$name.patch" ] || fail "there is no tooth $name"
done
workers=$(nproc)
workers=$((workers < ${#chosen[@]} ? workers : ${#chosen[@]}))
bites=$target/bites
rm -rf "$bites"
mkdir "$bites"
for ((worker = 0; worker < workers; worker++)); do
    pull_some "$worker" &
done
# A worker does not hear of Ctrl-C.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
wait
failures=()
for name in "${chosen[@]}"; do
    [ -e "$bites/$name" ] || failures+=("$name")
done
[ ${#failures[@]} -eq 0 ] || fail "${#failures[@]} of ${#chosen[@]} teeth did not bite: ${failures[*]}"
if [ "$what" = teeth ]; then
    printf '%s teeth bit\n' ${#chosen[@]}
    exit
fi
toothless=()
for model in "${!models[@]}"; do
    grep -qx "$model" "$bites"/* || toothless+=("$model")
done
[ ${#toothless[@]} -eq 0 ] || fail "no tooth names these models: ${toothless[*]}"
printf '%s models passed, %s teeth bit\n' ${#models[@]} ${#chosen[@]}
printf 'figure 1.1: %s models passed, %s teeth bit, none missed; %s s\n' ${#models[@]} ${#chosen[@]} $SECONDS
