# What the integration tests share: sourced, not run. TAP on stdout; everything else on stderr.
#
#   plan_skip REASON        print why and exit 77
#   check NAME COMMAND...   ok if the command succeeds
#   refuse NAME CODE PATTERN COMMAND...  ok if it exits with CODE and its stderr matches PATTERN (grep -E)
#   is NAME FOUND EXPECTED  ok if the two texts are equal; prints both if they are not
#   equal FOUND EXPECTED    the same as a command, for check and in functions
#   contains FILE PATTERN   a line of it matches (grep -E), as a command
#   output PATTERN          ... of what the last `check` printed
#   eventually COMMAND...   wait until the command succeeds: 120 s at most, then its last output is printed; the one
#                           way to wait, and never a check of how long something takes
#   move_clock              from here on the program under test and its agents go by a clock that the test moves
#   advance SECONDSs [NODE...]  time passes for them: here, or on those nodes of the test bed (tests/README.md)
#   hurry COMMAND...        eventually, and a second (or $step) passes here after each time that the command fails
#   copy_for_all FOLDER     from here on $ASSAY is a copy there, for other users and for nodes: they may not be able to enter
#                           the folder of the build
#   finish                  print the plan; exit 1 if anything failed
#
# $scratch is a fresh folder. It is removed at the end, but kept if a check failed: the logs and journals of the runs
# are there. $ASSAY is the program under test. ASSAY_TEST_ONLY=NAME stops after the check of that name, the only one
# that is reported: tests/run.sh --only.
set -u
: "${ASSAY:?the program under test}" "${ASSAY_SOURCE:?the source tree}" "${ASSAY_BUILD:?the build tree}"
tests_run=0 tests_failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-test.XXXXXX")
test_script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0" .sh)
cleanup() { :; } # a script that starts what must be stopped defines its own
test_ended() {
    [ "$BASHPID" = $$ ] || return # a child that a signal ends before it has become another program
    cleanup
    [ $tests_failed -gt 0 ] || { rm -rf "$scratch"; return; }
    echo "# kept: $scratch; alone: tests/run.sh --only integration-$(basename "$(dirname "$test_script")")-${test_script##*/}"
    find "$scratch" -name engine.log -size +0 2>/dev/null | head -3 | while read -r log; do
        tail -n 5 "$log" | sed "s|^|# ${log#"$scratch"/}: |"
    done
}
trap test_ended EXIT
data=${ASSAY_TEST_DATA:-$ASSAY_SOURCE/../shared/data}

plan_skip() { echo "1..0 # SKIP $*"; exit 77; }
report() { # report STATUS NAME
    [ "${ASSAY_TEST_ONLY:-$2}" = "$2" ] || return 0
    tests_run=$((tests_run + 1))
    if [ "$1" -eq 0 ]; then echo "ok $tests_run - $2"
    else tests_failed=$((tests_failed + 1)); echo "not ok $tests_run - $2"; fi
    [ -z "${ASSAY_TEST_ONLY:-}" ] || finish
}
skip() { # skip NAME WHY
    [ "${ASSAY_TEST_ONLY:-$1}" = "$1" ] || return 0
    tests_run=$((tests_run + 1)); echo "ok $tests_run - $1 # SKIP $2"
}
check() {
    local name=$1; shift
    "$@" >"$scratch/.out" 2>"$scratch/.err"; local status=$?
    [ $status -eq 0 ] || { echo "# exit $status of ${*@Q}"; cat "$scratch/.err" "$scratch/.out" | sed 's/^/# /' | head -20; }
    report $status "$name"
}
refuse() {
    local name=$1 code=$2 pattern=$3; shift 3
    "$@" >"$scratch/.out" 2>"$scratch/.err"; local status=$?
    if [ $status -eq "$code" ] && grep -qE -- "$pattern" "$scratch/.err"; then report 0 "$name"
    else
        echo "# exit $status, expected $code; stderr, expected to match: $pattern"
        sed 's/^/# /' "$scratch/.err" | head -20
        report 1 "$name"
    fi
}
equal() { [ "$1" = "$2" ] || { printf '%s\n' "found: $1" "expected: $2" >&2; return 1; }; }
is() {
    equal "$2" "$3" 2>"$scratch/.unlike"; local status=$?
    sed 's/^/# /' "$scratch/.unlike"
    report $status "$1"
}
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -40; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; }
exec {silence}<> <(:) # where nothing is ever written: to wait for it is a sleep that starts no process
eventually() {
    local until=$((SECONDS + 120)) last pauses=0 pause=0.05
    until last=$("$@" 2>&1); do
        [ $SECONDS -lt $until ] || { echo "# not within 120 s: $*"; sed 's/^/# /' <<<"$last" | tail -20; return 1; }
        [ $((++pauses)) -lt 40 ] || pause=${patience:-0.2}
        read -rt $pause -u "$silence" || :
    done
}
move_clock() { export ASSAY=$ASSAY_BUILD/tests/moved/bin/assay ASSAY_TEST_CLOCK=$scratch/clock; }
advance() {
    local by="+$((${1%s} * 1000))" node; shift
    [ $# -gt 0 ] || truncate -s "$by" "$ASSAY_TEST_CLOCK"
    for node; do bed on "$node" truncate -s "$by" /run/clock; done
}
or_passes() { "$@" || { advance "${step:-1s}"; return 1; }; }
hurry() { patience=0.05 eventually or_passes "$@"; }
copy_for_all() {
    mkdir -p "$1" && cp -rL "${ASSAY%/bin/assay}"/{bin,lib,libexec,share} "$1" && chmod -R a+rX "$1" || exit 1
    export ASSAY=$1/bin/assay
}
finish() { echo "1..$tests_run"; [ $tests_failed -eq 0 ] && [ $tests_run -gt 0 ]; exit; }
