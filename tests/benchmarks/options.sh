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
