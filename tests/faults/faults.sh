# shellcheck shell=bash
# The fault libraries for shell scripts: sourced after tap.sh.
#
#   with_fault disk-faults ASSAY_FAULT_FOLDER=... [ASSAY_FAULT_...=...] -- COMMAND...
#   with_fault clock-step ASSAY_CLOCK_STEP=FILE -- COMMAND...
#
# The command runs with the library; what it starts does not. Each library's source says what it takes.
with_fault() {
    local library=$ASSAY_BUILD/tests/faults/$1.so settings=()
    shift
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    # The sanitizer's runtime insists on being first; its library goes by its own name.
    local runtime
    runtime=$(ldd "$ASSAY" | awk '$1 ~ /^libasan/ {print $3}')
    env "${settings[@]}" LD_PRELOAD="${runtime:+$runtime:}$library" "$@"
}
