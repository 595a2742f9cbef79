#!/bin/bash
# shellcheck shell=bash
# The test bed for shell scripts: sourced, it gives the function `bed`; run, it is the command. See README.md.
#
#   . "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
#   bed_first 16 --names 'dahu-%.grenoble'
#   bed run ssh -F "$BED/ssh_config" dahu-3.grenoble true
#   bed cut 3
#
# The bed goes down when the script ends, whatever ends it; `bed down` does it before. A script may have several: BED
# says which is meant.
bed_source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Prints where the program is: the build's, or one compiled here when there is no build, once for each state of the sources.
bed_program() {
    local sources name folder
    if [ -n "${ASSAY_BUILD:-}" ] && [ -x "$ASSAY_BUILD/tests/test-bed/bed" ]; then
        echo "$ASSAY_BUILD/tests/test-bed/bed"
        return
    fi
    sources=("$bed_source"/tests/test-bed/*.c "$bed_source"/tests/machines/machine-{tree,pattern}.c
        "$bed_source"/engine/foundation/{failure,text,cleanup}.c)
    name=$({ echo "$bed_source"; cat "${sources[@]}" "$bed_source"/tests/{test-bed,machines}/*.h; } | sha256sum | cut -c1-16)
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/assay-test-bed
    if [ ! -x "$folder/bed-$name" ]; then
        mkdir -p "$folder" &&
            "${CC:-cc}" -std=gnu17 -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I"$bed_source" "-DMACHINES_FOLDER=\"$bed_source/tests/machines\"" \
                -o "$folder/bed-$name.$$" "${sources[@]}" -lm >&2 && mv "$folder/bed-$name.$$" "$folder/bed-$name" || return 1
    fi
    echo "$folder/bed-$name"
}

bed() {
    [ -n "${bed_command:-}" ] || bed_command=$(bed_program) || return 1
    case ${1:-} in
    up) # $$ is the script, in a subshell too; each node has a clock of its own, if the test moves clocks
        shift
        BED=$("$bed_command" up "$@" --owner "$$" ${ASSAY_TEST_CLOCK:+--sshd "SetEnv ASSAY_TEST_CLOCK=/run/clock"}) || return
        export BED ;;
    *) "$bed_command" "$@" ;;
    esac
}

# A bed for a part of a script: fails where there can be none, so that the part is skipped. Where one that is possible does
# not come up, the script ends as failed.
bed_for_part() {
    bed up "$@" && return
    [ $? -eq 3 ] || exit 1
    return 1
}
# The first bed of a script, which is skipped where there can be none.
bed_first() { bed_for_part "$@" || plan_skip "nodes of their own need root, and a kernel that lets it make namespaces and mounts"; }

is_reachable() { bed run ssh -F "$BED/ssh_config" "$1" true; }
# hurry_beside "NODE..." COMMAND...: hurry (tap.sh), but two seconds (or $step) pass whenever these nodes have let somebody
# in: they are not silent for long to the program whose time passes.
hurry_beside() { patience=0.05 eventually or_passes_beside "$@"; }
# while_hurrying "NODE..." COMMAND...: runs it while time passes like that, so that what is tried again after a pause takes
# a moment.
while_hurrying() {
    hurry_beside "$1" test -e "$scratch/.ended" & local hurry=$! status; shift
    "$@"; status=$?
    touch "$scratch/.ended"; wait $hurry; rm "$scratch/.ended"
    return $status
}
or_passes_beside() {
    local nodes=$1 node; shift
    "$@" && return
    for node in $nodes; do is_reachable "$node"; done
    advance "${step:-2s}"
    return 1
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    bed_command=$(bed_program) && exec "$bed_command" "$@"
fi
