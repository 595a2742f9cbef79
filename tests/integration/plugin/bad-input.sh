#!/bin/bash
# What no method may fall over: every fit plugin that is built gets every bad table, and there is one of two answers. A
# model that can be read, or one sentence and exit code 2; never another code, a hang, or a NaN among the numbers.
#
#   ASSAY_TEST_LARGE=1    also 10,000,000 rows in 1,000,000 groups (minutes)
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
methods=$("$ASSAY" plugins | awk '$1 == "fit" && !/cannot use the plugin/ {print $2}')

# options_of METHOD [OPTION...]: what a method must be told beside its input.
options_of() {
    case $1 in
        linear) echo "--terms 1+size" ;;
        mixture) echo "--set starts=4" ;; # the answers are not looked at
        piecewise) case $* in *--sizes*) ;; *) echo "--sizes size" ;; esac ;;
        smpi) echo "--set latency=1us --set bandwidth=1GB/s" ;;
    esac
}

# answered METHOD INPUT... [OPTION...]: why the answer is not one of the two is told on stderr.
answered() {
    local method=$1 status why=; shift
    rm -f model.json
    # shellcheck disable=SC2046 # options are words
    timeout 1000 "$ASSAY" fit "$method" "$@" $(options_of "$method" "$@") -o model.json >out 2>err </dev/null; status=$?
    case $status in
        0)
            if [ ! -s model.json ]; then why="no model was written"
            elif ! why=$(! grep -wiE -- "[-+]?(nan|infinity)" out model.json); then :
            elif ! why=$("$ASSAY" model check model.json 2>&1); then :
            else return 0
            fi ;;
        2)
            if [ -e model.json ]; then why="refused, and a model was written"
            elif [ "$(wc -l <err)" -ne 1 ]; then why="not one sentence: $(cat err)"
            else return 0
            fi ;;
        *) why="exit $status: $(cat err)" ;;
    esac
    echo "$why" | sed "s/^/# $method: /" | cut -c1-300 | head -8 >&2
    return 1
}
# every NAME INPUT... [OPTION...]: each method answers.
every() {
    local name=$1 bad=0; shift
    for method in $methods; do answered "$method" "$@" || bad=1; done
    report $bad "$name"
}

# rows COUNT PROGRAM: COUNT rows of a sane table, i = 0, 1, ..., after PROGRAM has had its way with them.
rows() {
    awk -v count="$1" 'function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
        BEGIN {
            state = 12345; split("Isend Send Recv PingPong", operations, " ")
            print "g,operation,node,size,flops,bytes,w,duration"
            for (i = 0; i < count; i++) {
                g = "a"; size = int(exp(random() * 14)) + 1; flops = int(3 * size * exp(random())); bytes = int(8 * size * exp(random()))
                w = 1; noise = 1 + 0.1 * random(); duration = sprintf("%.9g", (1e-6 + size * 1e-9) * noise)
                '"$2"'
                printf "%s,%s,n-%d,%s,%s,%s,%s,%s\n", g, operations[i % 4 + 1], i / 4 % 5, size, flops, bytes, w, duration
            }
        }'
}

rows 200 '' >sane.csv
for method in $methods; do
    # shellcheck disable=SC2046
    check "$method fits a sane table" "$ASSAY" fit "$method" sane.csv $(options_of "$method")
done
# Most cases go as groups of one table, six at a time (so many are told one by one): a bad group stops no other.
cases=0 names=
flush() {
    [ $cases -eq 0 ] || every "${names#, }" groups.csv --by g
    cases=0 names=
}
add() { # add NAME COUNT PROGRAM
    [ $cases -gt 0 ] || rows 0 '' >groups.csv
    rows "$2" 'g = "'"$1"'"; '"$3" | tail -n +2 >>groups.csv
    cases=$((cases + 1)) names="$names, $1"
    [ $cases -lt 6 ] || flush
}
add "a constant response" 100 'duration = 0.001'
add "constant regressors" 100 'size = 64; flops = 192; bytes = 512'
add "nothing changes" 100 'size = 64; flops = 192; bytes = 512; duration = 0.001'
for count in 1 2 3; do add "$count rows" $count ''; done
add "duplicate rows only" 40 'size = 100; flops = 300; bytes = 700; duration = 1e-6'
add "two rows over and over" 40 'size = i < 20 ? 100 : 200; flops = 3 * size; bytes = 7 * size; duration = size / 1e9'
add "empty fields" 100 'if (i % 3 == 0) duration = ""; if (i % 7 == 0) { size = ""; bytes = "" }'
add "words for what is missing" 100 'if (i % 3 == 0) duration = i % 2 ? "NaN" : "-inf"; if (i % 7 == 0) { size = "NA"; bytes = " " }'
add "padded numbers" 100 'size = "   " size; flops = flops "  "; bytes = " " bytes " "; duration = "  " duration'
add "no response at all" 100 'duration = ""'
add "no size at all" 100 'size = flops = bytes = ""'
add "some negative durations" 100 'if (i % 9 == 0) duration = -duration'
add "negative durations only" 100 'duration = -duration'
add "durations of zero" 100 'duration = 0'
add "negative sizes" 100 'if (i % 4 == 0) size = -size; if (i % 4 == 1) flops = -flops; if (i % 4 == 2) bytes = 0'
add "scales from 1e-12 to 1e+12" 96 's = exp(log(10) * (i % 25 - 12)); size = sprintf("%.9g", s); flops = sprintf("%.9g", 3 / s); bytes = size; duration = sprintf("%.9g", s * noise)'
add "durations that differ in the last digit" 100 'duration = sprintf("%.17g", 1 + i * 2.3e-16)'
add "sizes that differ in the last digits" 100 'size = sprintf("%.17g", 1e15 + i / 8)'
add "what no double can square" 100 'if (i % 2) { size = "1e300"; flops = bytes = "3e300" } if (i % 5 == 0) duration = "1.7e308"'
add "what a square makes nothing of" 100 'duration = duration "e-300"; size = size "e-300"'
flush

# These are about the whole table.
rows 1 '' >case.csv
every "one row" case.csv
rows 0 '' >case.csv
every "no rows" case.csv
rows 40 'size = 100; flops = 300; bytes = 700; duration = 1e-6' >case.csv
every "duplicate rows alone" case.csv
rows 100 'duration = ""' >case.csv
every "no response in the whole table" case.csv
rows 100 'if (i % 5 == 0) duration = "nan"; if (i % 5 == 1) size = "NaN"' >case.csv
every "NaN" case.csv
rows 100 'if (i % 5 == 0) duration = "inf"; if (i % 5 == 1) size = "-Infinity"' >case.csv
every "infinities" case.csv
rows 100 'if (i % 5 == 0) duration = "1e999"' >case.csv
every "what no double holds" case.csv
rows 4001 'g = i == 1234 ? "lonely" : "g-" i % 4' >case.csv
every "one group of one row among thousands" case.csv --by g
rows 300 'g = "g-" i' >case.csv
every "every row a group" case.csv --by g
rows 100 'w = 0' >case.csv
every "all weights zero" case.csv --weights w
rows 100 'w = i % 2 ? 0 : "1e-300"' >case.csv
every "tiny weights" case.csv --weights w
rows 100 'w = i == 50 ? -1 : 1' >case.csv
every "a negative weight" case.csv --weights w
rows 100 'w = ""' >case.csv
every "no weights where they should be" case.csv --weights w
rows 100 'if (i == 77) duration = "soon"' >case.csv
every "a word for a number" case.csv
refuse "... is told with its place" 2 "case.csv:79:[0-9]+.*soon" "$ASSAY" fit case.csv --terms 1+size
cut -d, -f1-3 sane.csv >case.csv
every "none of the columns" case.csv --response node
sed '1s/duration/durations/' sane.csv >case.csv
every "another response" case.csv --response duration
refuse "... of which the nearest is named" 2 "did you mean 'durations'" "$ASSAY" fit case.csv --terms 1+size --response duration
sed '1s/size/sizes/' sane.csv >case.csv
every "another size" case.csv --sizes size
{ head -1 sane.csv; tail -n +2 sane.csv | sort -t, -k8; } >case.csv
every "rows in another order" case.csv
# The order of the rows is nothing to those that add up.
numbers() { grep -oE '"(estimate|rss)": [^,]*' "$1" | awk '{printf "%.9g\n", $2}'; }
for method in linear transfer roofline; do
    case " $methods " in *[[:space:]]$method[[:space:]]*) ;; *) continue ;; esac
    # shellcheck disable=SC2046
    "$ASSAY" fit $method sane.csv $(options_of $method) --json >sorted 2>err && "$ASSAY" fit $method case.csv $(options_of $method) --json >shuffled 2>err
    numbers sorted >1; numbers shuffled >2
    report $([ -s 1 ] && cmp 1 2 >&2; echo $?) "... gives $method the same estimates"
done

# Archives: a column that they do not have, and units that cannot be one.
check "archives" "$ASSAY_BUILD/tests/unit/test-table-archive" --make "$scratch"
every "an archive without the columns" plain.zip --response flops
refuse "... the nearest is named" 2 "there is no response column 'durations'; did you mean 'duration'" \
    "$ASSAY" fit plain.zip --response durations
every "archives in units that are one another's" plain.zip ms.zip --sizes bytes --by none
every "archives in units that are not" plain.zip joule.zip --sizes bytes --by none
head -c 5000 plain.zip >cut.zip
for method in $methods; do
    # shellcheck disable=SC2046
    refuse "a truncated archive is no input of $method" 5 "cut.zip" "$ASSAY" fit "$method" cut.zip $(options_of "$method")
done

# large ROWS GROUPS MEBIBYTES: time and memory are bounded by what there is.
large() {
    rows "$1" 'g = i * 7919 % '"$2" >large.csv
    for method in $methods; do
        # shellcheck disable=SC2046
        timeout 590 "$ASSAY_BUILD/tests/benchmarks/measure" "$ASSAY" fit "$method" large.csv --by g $(options_of "$method") \
            -o model.json 3>usage >out 2>err </dev/null
        local status=$? seconds mebibytes
        read -r seconds mebibytes _ <usage
        echo "# $method: $1 rows in $2 groups, $seconds s, $mebibytes MiB"
        report $({ [ $status -eq 0 ] || [ $status -eq 2 ]; } && awk "BEGIN {exit !($mebibytes <= $3)}"; echo $?) \
            "$method: $1 rows in $2 groups within $3 MiB"
    done
}
most=256
grep -q __asan_init "$ASSAY" && most=1024 # the sanitizer's own
large 50000 5000 $most
[ -z "${ASSAY_TEST_LARGE-}" ] || large 10000000 1000000 4096
finish
