# What the integration tests share: sourced, not run. TAP on stdout; everything else on stderr.
#
#   plan_skip REASON        print why and exit 77
#   check NAME COMMAND...   ok if the command succeeds
#   refuse NAME CODE PATTERN COMMAND...  ok if it exits with CODE and its stderr matches PATTERN (grep -E)
#   finish                  print the plan; exit 1 if anything failed
#
# $scratch is a fresh folder that is removed at the end. $ASSAY is the program under test.
set -u
: "${ASSAY:?the program under test}" "${ASSAY_SOURCE:?the source tree}" "${ASSAY_BUILD:?the build tree}"
tests_run=0 tests_failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
data=${ASSAY_TEST_DATA:-$ASSAY_SOURCE/../shared/data}

plan_skip() { echo "1..0 # SKIP $*"; exit 77; }
report() { # report STATUS NAME
    tests_run=$((tests_run + 1))
    if [ "$1" -eq 0 ]; then echo "ok $tests_run - $2"
    else tests_failed=$((tests_failed + 1)); echo "not ok $tests_run - $2"; fi
}
skip() { tests_run=$((tests_run + 1)); echo "ok $tests_run - $1 # SKIP $2"; }
check() {
    local name=$1; shift
    "$@" >"$scratch/.out" 2>"$scratch/.err"; local status=$?
    [ $status -eq 0 ] || { echo "# exit $status"; cat "$scratch/.err" "$scratch/.out" | sed 's/^/# /' | head -20; }
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
finish() { echo "1..$tests_run"; [ $tests_failed -eq 0 ] && [ $tests_run -gt 0 ]; exit; }
