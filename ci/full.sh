#!/usr/bin/env bash
# The long forms of all checks; their figures go into docs/reliability.md.
#
#   ci/full.sh              every piece, in the order of the list (some hours on 2 cores)
#   ci/full.sh PIECE...     these pieces
#   ci/full.sh --list       the pieces
#
# A check prints each of its figures on a line: "figure ID: TEXT". The row of docs/reliability.md that begins with ID gets
# the text and the date. A figure that has no row is an error, and so is a row of a piece without a figure: what the
# record says was measured, or the piece failed. A piece that fails does not keep the others from running. What a piece
# printed is in target/full/PIECE.log.
#
# Needs what each of its scripts needs; those say so, and skip what cannot be had: its rows stay as they are, and that is
# told at the end.

set -euo pipefail
cd "$(dirname "$0")/.."
source ci/tool.sh

record=docs/reliability.md
logs=$(target_directory)/full

# Unit tests in their long form, as released code: those whose names begin with this.
unit_tests() {
    CUCKOO_FULL=1 cargo test --locked --release --lib "$1" -- --nocapture --test-threads=1
}

faults() {
    local tests=(panics snapshots rayon capacity memory)
    unit_tests killed && CUCKOO_FULL=1 cargo test --locked "${tests[@]/#/--test=faults_}" -- --nocapture --test-threads=1
}

reliability() {
    cargo run --locked --release -p reliability -- "$1"
}

# Name, the rows that it must fill, what it runs. A function is one list of commands: no other failure of it is seen.
pieces=(
    "loom         1.1         ci/loom.sh"
    "schedules    1.2,1.3     ci/schedules.sh full"
    "histories    2           unit_tests histories"
    "stress       3           reliability stress"
    "scale        4           reliability scale"
    "faults       5           faults"
    "storm        6           unit_tests storm"
    "adversary    7           reliability adversary"
    "mutants      8.1         ci/mutants.sh"
    "coverage     8.2         ci/coverage.sh"
    "fuzz         8.3,8.4,8.5,8.6  ci/fuzz.sh full"
    "asan         8.7         ci/asan.sh full"
    "hygiene      9.1,9.2,9.3,9.4  ci/hygiene.sh"
    "machines     9.5,9.6,9.7 ci/other-machines.sh full"
)

# Puts the figures of a log into their rows, and says how many rows of $2, a list of numbers or of their beginnings, got
# none.
write_down() {
    local log=$1 rows=$2 status=0
    awk -v date="$(date +%F)" -v rows="$rows" '
        FILENAME == ARGV[1] {
            if ($0 ~ /^figure [0-9]+\.[0-9]+: /) {
                id = substr($2, 1, length($2) - 1)
                text = $0
                sub(/^[^:]*: /, "", text)
                figures[id] = text
            }
            next
        }
        /^\| [0-9]+\.[0-9]+ \|/ {
            split($0, cells, / *\| */)
            id = cells[2]
            if (id in figures) {
                printf "| %s | %s | %s | %s | %s |\n", id, cells[3], cells[4], figures[id], date
                written[id] = 1
                next
            }
            count = split(rows, expected, ",")
            for (i = 1; i <= count; i++) {
                if (id == expected[i] || index(id, expected[i] ".") == 1) {
                    print "no figure for row " id > "/dev/stderr"
                    wrong = 1
                }
            }
        }
        { print }
        END {
            for (id in figures) {
                if (!(id in written)) {
                    print "no row for figure " id > "/dev/stderr"
                    wrong = 1
                }
            }
            exit wrong
        }
    ' "$log" "$record" >"$record.new" || status=1
    if [ "$(wc -l <"$record.new")" -eq "$(wc -l <"$record")" ]; then
        mv "$record.new" "$record"
    else
        status=1
    fi
    return $status
}

run() {
    local name rows command status=0 log
    read -r name rows command <<<"$1"
    log=$logs/$name.log
    printf '\n== %s: %s (after %d s)\n' "$name" "$command" "$SECONDS"
    $command 2>&1 | tee "$log" || status=$?
    if grep '^skipped: ' "$log" | sed "s/^/$name /" >>"$logs/skipped"; then
        rows=
    fi
    write_down "$log" "$rows" || status=1
    [ $status -eq 0 ] || failed+=("$name")
}

case ${1-} in
    -h | --help) usage && exit ;;
    --list) printf '%s\n' "${pieces[@]}" && exit ;;
    -*) usage >&2 && exit 1 ;;
esac

mkdir -p "$logs"
: >"$logs/skipped"
chosen=() failed=()
if [ $# -eq 0 ]; then
    chosen=("${pieces[@]}")
fi
for name in "$@"; do
    found=
    for piece in "${pieces[@]}"; do
        [ "${piece%% *}" != "$name" ] || found=$piece
    done
    [ -n "$found" ] || fail "there is no piece $name; see --list"
    chosen+=("$found")
done
for piece in "${chosen[@]}"; do
    run "$piece"
done
cat "$logs/skipped"
[ ${#failed[@]} -eq 0 ] || fail "failed: ${failed[*]}"
printf '\nall %s pieces passed; the figures are in %s\n' ${#chosen[@]} "$record"
