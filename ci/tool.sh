# What the other scripts here share. They source it, standing in the folder of the workspace.
#
#   tool NAME VERSION    makes the cargo subcommand NAME, such as cargo-hack, available: the one on the PATH if it is of
#                        that version, else one that is installed from crates.io into target/tools, where it stays for
#                        the next run. It is built without optimisation, in a fraction of the time. Prints nothing,
#                        or one line that says why it cannot be had, and then returns 1
#   nightly              whether a nightly toolchain is installed
#   target_directory     prints where the workspace is built
#   fail TEXT...         prints the text with the name of the calling script, and ends it with exit code 1
#   usage                prints the comment at the head of the calling script
#   skip TEXT...         prints "skipped: TEXT" and ends the script as passed: what it needs cannot be had here
#   ${without_slow_tests[@]}
#                        arguments for binaries of tests: those that take most of the time of the unit tests are left out
#   thousands NUMBER     prints 1234567 as 1,234,567
#   copy_tree FOLDER     makes FOLDER a copy of the working tree, as git would commit it
#   break_copy FOLDER PATCH LOG
#                        the same, with PATCH applied; what went wrong is in LOG, and then it returns 1
#
# shellcheck shell=bash

without_slow_tests=(--skip=histories --skip=killed_writer --skip=storm)

target_directory() {
    cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

tool() {
    local name=$1 version=$2 found root log
    found=$(cargo "${name#cargo-}" --version 2>/dev/null | head -n 1) || true
    [ "${found##* }" != "$version" ] || return 0
    root=$(target_directory)/tools/$name-$version
    if [ ! -x "$root/bin/$name" ]; then
        mkdir -p "$root"
        log=$root/install.log
        # Flags and target directories of the caller's are for his own builds.
        # In one folder: they share many dependencies.
        if ! env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET CARGO_PROFILE_DEV_DEBUG=0 \
            CARGO_TARGET_DIR="${root%/*}/build" \
            cargo install "$name" --debug --locked --version "$version" --root "$root" >"$log" 2>&1; then
            printf '%s %s cannot be installed: %s\n' "$name" "$version" "$(grep -m 1 '^error' "$log" || tail -n 1 "$log")"
            return 1
        fi
    fi
    PATH=$root/bin:$PATH
}

nightly() {
    { rustup toolchain list 2>/dev/null || true; } | grep '^nightly-[a-z]' >/dev/null
}

usage() {
    sed -n "2,/^[^#]/ { s/^# \\{0,1\\}//p }" "ci/${0##*/}"
}

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

skip() {
    printf 'skipped: %s\n' "$*"
    exit 0
}

thousands() {
    sed -E ':again; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; t again' <<<"$1"
}

copy_tree() {
    local file
    rm -rf "$1"
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        # A file that was deleted is still listed.
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done | xargs -0 cp --parents --target-directory "$1" --
}

break_copy() {
    copy_tree "$1"
    # Without the ceiling git would take the copy for a part of the repository around it, and apply nothing.
    GIT_CEILING_DIRECTORIES=$(dirname "$1") git -C "$1" apply "$2" >"$3" 2>&1
}
