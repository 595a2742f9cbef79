#!/bin/bash
# Shows that every rule can fail: in a small tree that keeps them all, one breach at a time is planted, must be found
# in its file by its rule, and is taken out again.
#
#   self-test.sh CC
set -u
cc=${1:?usage: self-test.sh CC}
rules=$(cd "$(dirname "$0")" && pwd)/rules.sh
tree=$(mktemp -d "${TMPDIR:-/tmp}/assay-rules-test.XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
number=0 failed=0
ASSAY_RULES_EXCEPTIONS=$tree/exceptions.txt
export ASSAY_RULES_EXCEPTIONS

report() { # report STATUS NAME
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then echo "ok $number - $2"; else failed=1; echo "not ok $number - $2"; fi
}
put() { mkdir -p "$tree/${1%/*}" && printf '%s\n' "${@:2}" >"$tree/$1"; }
header() { # header PATH LINE...: a header with its guard
    local name=${1%.h} folder guard
    folder=${name%/*}
    guard=$(printf 'ASSAY_%s_%s_H' "${folder##*/}" "${name##*/}" | tr 'a-z-' 'A-Z_')
    put "$1" "#ifndef $guard" "#define $guard" '' "${@:2}" '' '#endif'
}

cp "$(dirname "$rules")/../../.clang-format" "$tree/"
: >"$ASSAY_RULES_EXCEPTIONS"
header engine/foundation/text.h '#include <stddef.h>' '' 'struct text {' '    size_t length;' '};'
header engine/foundation/hash.h 'struct hash;'
put engine/foundation/hash.c '#include "engine/foundation/hash.h"' '' '#include <openssl/evp.h>'
header engine/documents/json.h '#include "engine/foundation/text.h"'
put engine/documents/json.c '#include "engine/documents/json.h"' '' '#include <yaml.h>'
header plugins/interface/assay/column.h 'struct column;'
header engine/documents/column.h '#include <assay/column.h>'
header engine/event-loop/event-loop.h 'struct event_loop;'
header engine/design/design.h '#include "engine/documents/json.h"'
header engine/agent/wire/protocol.h '#include "engine/foundation/text.h"'
header engine/agent/serve/agent.h '#include "engine/event-loop/event-loop.h"'
header engine/remote/link.h '#include "engine/agent/wire/protocol.h"'
header engine/run/record/journal.h 'struct journal;'
header engine/run/nodes/nodes.h '#include "engine/run/record/journal.h"'
header engine/run/run.h '#include "engine/remote/link.h"' '#include "engine/run/nodes/nodes.h"'
header engine/plugin/loader.h '#include "plugins/interface/plugin.h"'
header archive-format/reader.h '#include "engine/documents/json.h"'
header experiments/kernels/settings.h '#include <stdint.h>'
put experiments/blas/blas.c '#include "settings.h"'
header plugins/interface/plugin.h '#include <stdint.h>'
header plugins/fit/fit.h '#include "plugins/interface/plugin.h"'
header engine/numerics/curve.h '#include "engine/foundation/text.h"' '' '#include <gsl/gsl_cdf.h>'
put plugins/fit/fit.c '#include "plugins/fit/fit.h"' '#include "engine/numerics/curve.h"'
header experiments/dgemm/rows.h
put experiments/dgemm/dgemm.c '#include "rows.h"' '' '#include <stdio.h>'
put engine/command-line/main.c '#include "engine/run/run.h"' '#include <fcntl.h>' '' 'int main(void) {' \
    '    const char *words = "strcpy(a, b); open(c) /* not code */ \" sprintf(";' \
    '    /* atoi(1), open("x", 0); */ // system("x")' \
    '    return words ? open("/x", O_RDONLY |' '                                  O_CLOEXEC)' '                 : 0;' '}'
put tests/unit/run/run.c '#include "engine/agent/serve/agent.h"' '#include "engine/run/run.h"' '' '#include <cmocka.h>'
# shellcheck disable=SC2046
if command -v clang-format >/dev/null; then (cd "$tree" && clang-format -i $(find . -name '*.[ch]')); fi

bash "$rules" "$tree" "$cc" >"$tree.clean"
status=$?
[ $status -eq 0 ] || sed 's/^/# /' "$tree.clean"
report $status "a tree that keeps the rules passes"
rm -f "$tree.clean"

# plant RULE PATH LINE...: adds the lines to the file (or makes it); the rule must name the file.
plant() {
    local rule=$1 path=$2 kept=$tree/kept name="$1 finds in $2: ${3%%$'\n'*}" output status
    shift 2
    rm -f "$kept"
    [ ! -e "$tree/$path" ] || cp "$tree/$path" "$kept"
    mkdir -p "$tree/${path%/*}"
    printf '%s\n' "$@" >>"$tree/$path"
    output=$(bash "$rules" "$tree" "$cc" "$rule")
    status=$?
    if [ $status -eq 1 ] && grep -q "^not ok 1 - $rule" <<<"$output" && grep -q "^# $path:" <<<"$output"; then
        report 0 "$name"
    elif grep -q "# SKIP" <<<"$output"; then
        number=$((number + 1))
        echo "ok $number - $name # SKIP the rule is skipped here"
    else
        echo "# ${output//$'\n'/$'\n'# }"
        report 1 "$name"
    fi
    rm -f "$tree/$path"
    [ ! -e "$kept" ] || mv "$kept" "$tree/$path"
}

plant rooms engine/foundation/text.h '#include "engine/documents/json.h"'
plant rooms engine/documents/json.h '#include "engine/event-loop/event-loop.h"'
plant rooms engine/agent/serve/agent.h '#include "engine/documents/json.h"'
plant rooms engine/agent/serve/agent.h '#include "engine/foundation/hash.h"'
plant rooms engine/run/run.h '#include "engine/agent/wire/protocol.h"'
plant rooms engine/remote/link.h '#include "engine/agent/serve/agent.h"'
plant rooms engine/run/run.h '#include "engine/plugin/loader.h"'
plant rooms engine/run/campaign/plan.h '#include "engine/run/run.h"'
plant rooms engine/run/record/journal.h '#include "engine/run/campaign/plan.h"'
plant rooms engine/run/run.h '#  include   "plugins/interface/plugin.h"'
plant rooms archive-format/reader.h '#include "engine/design/design.h"'
plant rooms plugins/fit/fit.c '#include "engine/foundation/text.h"'
plant rooms engine/numerics/curve.h '#include "engine/design/design.h"'
plant rooms plugins/interface/plugin.h '#include "engine/foundation/text.h"'
plant rooms engine/plugin/loader.h '#include "plugins/fit/fit.h"'
plant rooms engine/run/run.h '#include "tests/unit/run/run.h"'
plant rooms experiments/dgemm/dgemm.c '#include "engine/foundation/text.h"'
plant rooms engine/run/record/journal.h '#include "engine/run/nodes/nodes.h"'
plant rooms engine/run/measure/lane.c '#include "engine/run/run.h"'
plant rooms engine/run/attic/attic.h '#include "engine/run/record/journal.h"'
plant rooms engine/attic/attic.h '#include "engine/foundation/text.h"'
plant libraries engine/run/run.h '#include <libssh/libssh.h>'
plant libraries engine/run/run.h '#include <curl/curl.h>'
plant libraries engine/documents/json.c '#include <archive.h>'
plant libraries engine/run/run.h '#include <yaml.h>'
plant libraries archive-format/reader.h '#include <cjson/cJSON.h>'
plant libraries engine/design/design.h '#include <gsl/gsl_rng.h>'
plant libraries plugins/fit/fit.c '#include <gsl/gsl_rng.h>'
plant libraries engine/run/run.h '#include <sqlite3.h>'
plant libraries engine/foundation/text.h '#include <openssl/sha.h>'
plant libraries plugins/fit/fit.c '#include <glib.h>'
plant paths engine/run/run.h '#include "run-private.h"'
plant paths engine/run/run.h '#include "engine/run/nowhere.h"'
plant paths experiments/blas/blas.c '#include "nowhere.h"'
plant paths engine/run/run.h '#include "engine/run/../remote/link.h"'
plant banned engine/command-line/main.c 'void f(char *a) { strcpy(a, "x"); }'
plant banned engine/command-line/main.c 'int f(char *a) { return 1 + atoi (a); }'
plant banned plugins/fit/fit.c 'void f(void) { char x = 0x27; system("x"); }'
plant banned tests/unit/run/run.c 'void f(char *a) { sprintf(a, "x"); }'
plant descriptors engine/command-line/main.c 'int f(void) {' '    return open("/x",' '                O_RDONLY);' '}'
plant descriptors engine/command-line/main.c 'int f(int d[2]) { return pipe(d); }'
plant descriptors engine/command-line/main.c 'void *f(void) { return fopen("/x", "r"); }'
plant waits engine/command-line/main.c 'void f(void) { usleep (10); }'
plant waits tests/unit/run/run.c 'void f(int64_t start) { assert_true(clock_monotonic_ns() - start < 10); }'
plant waits tests/integration/run/run.sh 'sleep 2'
plant waits tests/integration/run/run.sh 'wait; [ $((SECONDS - before)) -lt 10 ]'
plant figures tests/benchmarks/scale 'echo "figure nodes $nodes"'
plant names engine/run/run-util.c '/* a drawer */'
plant guards engine/run/campaign/plan.h '#pragma once'
plant headers engine/run/run.h 'uint64_t run_size(void);'
plant length engine/run/run.c "$(seq 801)"
plant format engine/run/run.c 'int   f( void );'

printf 'banned engine/run/run.h for no reason\n' >"$ASSAY_RULES_EXCEPTIONS"
plant banned engine/run/run.h '/* an exception that is not needed */'
printf 'banned engine/run/run.c it must\n' >"$ASSAY_RULES_EXCEPTIONS"
put engine/run/run.c 'void f(char *a) { strcpy(a, "x"); }'
bash "$rules" "$tree" "$cc" banned >/dev/null
report $? "an exception lets a breach pass"

echo "1..$number"
exit $failed
