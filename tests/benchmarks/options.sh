# Sourced by the benchmarks. take_options "KNOWN..." ARGUMENT...: --help prints the comment that the script begins with; an
# argument that is not among KNOWN is refused; nothing is measured in either case.
take_options() {
    local known=" $1 " name=${0##*/} expected="${1:+$1 or }--help" argument; shift
    for argument in "$@"; do
        case $argument in
        --help | -h)
            sed -n '1d; /^#/!q; s/^# \{0,1\}//p' "$0"
            exit 0 ;;
        esac
        [[ $known == *" $argument "* ]] && continue
        echo "$name: '$argument' is no option; expected $expected" >&2
        exit 2
    done
}

# figure NAME VALUE UNIT [any]: prints a figure. What is no number was not found, and so was what is not above 0, unless the
# figure may have any value: then the benchmark ends with exit code 1. Not for a pipeline, of which only a part would end.
figure() {
    awk -v value="$2" -v any="${4-}" 'BEGIN { exit !(value ~ /^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$/ && (any || value > 0)) }' || {
        echo "${0##*/}: $1 was not found: '$2' $3; expected a number$([ "${4-}" ] || echo ' above 0')" >&2
        exit 1
    }
    echo "figure $1 $2 $3"
}

# Nodes and commands in other folders use the build tree, too.
[ -z "${ASSAY_BUILD-}" ] || ASSAY_BUILD=$(realpath "$ASSAY_BUILD")
