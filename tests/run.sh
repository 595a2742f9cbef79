#!/bin/bash
# All tests: installs what is missing (Debian), builds with warnings as errors, as Release and with the address and
# undefined-behaviour sanitizers, and runs everything under one ctest, whose summary comes last.
#
#   tests/run.sh [--quick] [--jobs N] [CTEST OPTIONS]
#     --quick    without the sanitizers
#     --jobs N   compile and test N at a time; default: one a processor
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

quick=no jobs=$(nproc)
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --help | -h) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit ;;
    *) break ;; # for ctest
    esac
    shift
done

started=$SECONDS
step() { printf '\n== %s (%d s)\n' "$*" $((SECONDS - started)); }

step "Packages"
examples/install-packages.sh examples/packages.txt tests/packages.txt

# Folders of their own: a developer's build keeps its settings.
build() { # build TYPE FOLDER [CMAKE OPTIONS]
    local type=$1 folder=$2
    shift 2
    step "Build: $type"
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE="$type" -DASSAY_WARNINGS_AS_ERRORS=ON \
        -DASSAY_BUILD_TESTS=ON "$@" >"$folder.log" 2>&1 || { tail -40 "$folder.log" >&2; return 1; }
    cmake --build "$folder" -j "$jobs" -- --quiet
}
mkdir -p build/tests
build Release build/tests/release
folders="\"$root/build/tests/release\""
if [ $quick = no ]; then
    build Sanitize build/tests/sanitize -DASSAY_TEST_PREFIX=sanitize-
    folders="$folders \"$root/build/tests/sanitize\""
fi

step "Tests"
echo "subdirs($folders)" >build/tests/CTestTestfile.cmake
status=0
# Thirds of a processor, of which a test that computes takes three, and four seats for those that wait: tests/CMakeLists.txt.
ctest --test-dir build/tests -j $((3 * jobs + 2)) --output-on-failure --no-tests=error "$@" || status=$?
exit $status
