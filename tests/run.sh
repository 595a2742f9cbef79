#!/bin/bash
# The tests: installs what is missing (Debian), builds with warnings as errors, as Release and with the address and
# undefined-behaviour sanitizers, and runs everything under one ctest, whose summary comes last. tests/README.md says more.
#
#   tests/run.sh [--all | --quick | --only NAME] [--jobs N] [CTEST OPTIONS]
#     --all        those too that take long: random kills, long outages; units and scripts in both builds
#     --quick      without the sanitizers
#     --only NAME  one test (as ctest names it), one function of a unit test, or one check of a script; builds what
#                  that needs, installs nothing
#     --jobs N     compile and test N at a time; default: one a processor
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

tier=ci only='' jobs=$(nproc)
while [ $# -gt 0 ]; do
    case $1 in
    --all) tier=all ;;
    --quick) tier=quick ;;
    --only) only=${2:?--only needs a name}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --help | -h) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit ;;
    *) break ;; # for ctest
    esac
    shift
done

step() { printf '\n== %s (%d s)\n' "$*" $SECONDS; }

# Folders of their own: a developer's build keeps its settings.
build() { # build TYPE FOLDER TARGETS [CMAKE OPTIONS]
    local type=$1 folder=$2 targets=$3
    shift 3
    step "Build: $type"
    mkdir -p "$folder"
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE="$type" -DASSAY_WARNINGS_AS_ERRORS=ON \
        -DASSAY_BUILD_TESTS=ON "$@" >"$folder.log" 2>&1 || { tail -40 "$folder.log" >&2; return 1; }
    # shellcheck disable=SC2086 # several words
    cmake --build "$folder" -j "$jobs" -t $targets -- --quiet
}

# What all tests start; a unit test's own program is built beside it.
programs="engine/all plugins/all experiments/all tests/machines/all tests/simulation/all tests/test-bed/all tests/faults/all tests/plugins/all"
if [ -n "$only" ]; then
    test=$only check=''
    case $only in unit-* | integration-* | fuzz-* | rules* | simulation*) ;; *)
        check=$only
        if file=$(grep -rlE --include="*.c" "(TEST|cmocka_unit_test[a-z_]*)\($only[,)]" tests/unit); then test=unit
        elif file=$(grep -rlF -- "\"$only\"" tests/integration); then test=integration
        else echo "no test, function or check has the name '$only'" >&2; exit 2; fi
        file=$(head -n 1 <<<"$file")
        test=$test-$(basename "$(dirname "$file")")-$(basename "${file%.*}") ;;
    esac
    case $test in
    unit-*) programs="$programs test-${test#unit-}" ;;
    fuzz-*) programs="$test" ;;
    simulation*) programs=tests/simulation/all ;;
    integration-*) programs="$programs integration-programs" ;;
    esac
    build Release build/tests/release "$programs"
    ASSAY_TEST_ONLY=$check exec ctest --test-dir build/tests/release -V --no-tests=error -R "^$test\$" "$@"
fi

step "Packages"
examples/install-packages.sh examples/packages.txt tests/packages.txt
examples/install-packages.sh tests/packages-oar.txt || echo "tests: without OAR, whose test is skipped" >&2
case $tier in
ci) build Release build/tests/release "$programs integration-programs" ;; # units are tested under the sanitizers
*) build Release build/tests/release all ;;
esac
folders="\"$root/build/tests/release\""
if [ $tier != quick ]; then
    build Sanitize build/tests/sanitize all -DASSAY_TEST_PREFIX=sanitize-
    folders="$folders \"$root/build/tests/sanitize\""
fi

step "Tests"
echo "subdirs($folders)" >build/tests/CTestTestfile.cmake
labels=(-LE "long|twice") # units are tested under the sanitizers, and scripts without
[ $tier != quick ] || labels=(-LE long)
[ $tier != all ] || labels=()
# What was skipped, a whole test or a part of one, and why: ctest prints neither of a test that passes.
list_skipped() {
    local log=build/tests/Testing/Temporary/LastTest.log # .tmp until ctest ends
    { cat $log.tmp 2>/dev/null || cat $log; } |
        sed -nE 's|^[0-9]+/[0-9]+ Testing: |in |p; s/^(1\.\.0 # SKIP|SKIPPED:) /  /p; s/^ok [0-9]+ - (.*) # SKIP /  \1: /p' |
        awk '/^in / { test = $2; next } { $0 = "  " test ": " substr($0, 3) } !seen[$0]++ { if (!said++) print "\nSkipped:"; print }'
}
# In thirds of a processor, and eight more, since most of them wait: tests/CMakeLists.txt.
ASSAY_TEST_ALL=$([ $tier != all ] || echo yes) \
    ctest --test-dir build/tests -j $((3 * jobs + 8)) --output-on-failure --no-tests=error "${labels[@]}" "$@" 2>&1 |
    while IFS= read -r line; do
        case $line in *"% tests passed, "*) list_skipped ;; esac
        printf '%s\n' "$line"
    done
