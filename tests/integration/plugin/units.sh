#!/bin/bash
# Inputs of one table that measure in different units: converted where they can be, refused where they cannot, and
# either is said.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
check "archives" "$ASSAY_BUILD/tests/unit/test-table-archive" --make "$scratch"
said() { [ "$(grep -c '^note: the column' .out)" -eq "$1" ]; }
unit() { grep -q '"response": {"name": "duration", "unit": "'"$2"'"}' "$1"; }
# The estimates and standard errors of a model, in ten digits.
numbers() { grep -oE '"(estimate|standard_error)": [^,]*' "$1" | awk '{printf "%.10g\n", $2}'; }

check "seconds twice" "$ASSAY" fit plain.zip dgemm.zip --terms '1+bytes+k' --set noise=homoscedastic --by none -o seconds.json
report $(said 0; echo $?) "nothing is said where nothing is to be said"
check "seconds and milliseconds, bytes and KiB" "$ASSAY" fit plain.zip ms.zip --terms '1+bytes+k' --set noise=homoscedastic --by none -o mixed.json
report $(said 2 && grep -q "^note: the column 'duration' of 'ms.zip' is converted to 's'$" .out; echo $?) "each column is spoken of once, with its file and the unit"
numbers seconds.json >1; numbers mixed.json >2
report $([ -s 1 ] && cmp 1 2 >&2 && unit mixed.json s; echo $?) "the model is that of the same unit, the first one's"
check "the other way round" "$ASSAY" fit ms.zip plain.zip dgemm.zip --terms '1+bytes' --by none -o milli.json
report $(unit milli.json ms && said 2 && grep -q "of 'plain.zip' and 1 more is converted to 'ms'" .out; echo $?) "the first one's unit is another"
refuse "a time and an energy" 2 "joule.zip: the column 'duration' has the unit 'J'; expected a unit that converts to 's'" \
    "$ASSAY" fit plain.zip joule.zip --terms 1+m --by none -o no.json
report $([ ! -e no.json ]; echo $?) "leave no model"
refuse "groups by numbers in different units" 2 "'bytes' has the unit 'KiBy'; expected the same unit 'By' as in 'plain.zip', because groups are compared as texts" \
    "$ASSAY" fit plain.zip ms.zip --terms 1+m --by bytes
printf 'm,bytes,duration\n64,4096,0.001\n65,8192,0.002\n99,100,0.004\n' >calls.csv
check "a CSV beside an archive" "$ASSAY" fit calls.csv plain.zip --terms 1+bytes --by none -o beside.json
report $(grep -q "the column 'duration' of 'calls.csv' has no unit, and is assumed to be in 's'" .out && unit beside.json s; echo $?) \
    "is taken to be in the archive's unit, aloud"
# Units in the header of a CSV.
awk -F, 'NR == 1 {print "m,bytes [KiB],duration [ms]"} NR > 1 {print $1 "," $2 / 1024 "," $3 * 1000}' OFS=, calls.csv >headed.csv
check "a CSV with units in its header" "$ASSAY" fit headed.csv --terms '1+bytes' --by none -o headed.json
report $(unit headed.json ms && grep -q '"name": "bytes", "unit": "ms/KiBy"' headed.json; echo $?) "has them"
check "... beside one in others" "$ASSAY" fit plain.zip headed.csv --terms '1+bytes' --by none -o both.json
"$ASSAY" fit plain.zip calls.csv --terms '1+bytes' --by none -o same.json >/dev/null
numbers both.json >1; numbers same.json >2
report $(said 2 && [ -s 1 ] && cmp 1 2 >&2; echo $?) "is converted"
sed 's/ \[ms\]/ [furlong]/' headed.csv >furlong.csv
refuse "what is no unit" 2 "unknown unit 'furlong' in column 'duration \[furlong\]'" "$ASSAY" fit furlong.csv --terms '1+bytes'
refuse "a table without a header" 2 "there are: 64, 0.5; a file without a header needs --columns" "$ASSAY" fit <(echo 64,0.5)
printf 'm;duration\n64;0,5\n65;0,7\n' >comma.csv
refuse "decimal commas" 2 "comma.csv:2:4: column 'duration' is '0,5', expected a number with a decimal point" \
    "$ASSAY" fit comma.csv --terms 1+m
check "a CSV alone" "$ASSAY" fit calls.csv --terms 1+bytes
report $(grep -q "the column 'duration' has no unit, and seconds are assumed; a" .out; echo $?) "is in s, aloud"
# As people write units; named with and without them.
for header in 'duration (us)' 'duration(us)' 'duration [µs]' 'duration [μs]' 'duration [usec]' 'duration in us' '"duration, us"' duration_us; do
    { echo "x (mean),bytes,$header" && printf '1,64,100\n2,65,200\n3,99,400\n'; } >written.csv
    { "$ASSAY" fit written.csv --terms 1+bytes -o written.json --response duration &&
        "$ASSAY" fit written.csv --terms 1+bytes --response 'duration (us)'; } >.out 2>&1
    report $(grep -q '"response": {"name": "duration.*", "unit": "us"}' written.json && ! grep "no unit" .out; echo $?) "the header $header is in us"
done
refuse "a name with another unit" 2 "there is no response column 'duration \(ms\)'" "$ASSAY" fit written.csv --terms 1+bytes --response 'duration (ms)'
refuse "a column of no unit in brackets" 2 "unknown unit 'mean' in column 'x \(mean\)'" "$ASSAY" fit written.csv --terms 1+bytes --response x
printf '# OSU MPI Latency Test v7.1\n# Size       Avg Latency(us)\n1                       1.45\n2          1.50\n4    1.62\n' >osu.txt
check "a table separated by blanks" "$ASSAY" fit osu.txt --terms 1+Size --response 'Avg Latency' -o osu.json
report $(grep -q '"name": "Avg Latency", "unit": "us"' osu.json && grep -q '"rows": 3' osu.json; echo $?) "has the names and units of its comment"
printf '       1  0.33   0.000023\n       2  0.66 0.000024\n   4 1.2  0.000025\n' >np.out
check "NetPIPE's" "$ASSAY" fit np.out --columns 'bytes,rate [Mbps],duration [s]' --terms 1+bytes --response rate -o np.json
report $(grep -q '"name": "rate", "unit": "Mbit/s"' np.json && grep -q '"rows": 3' np.json; echo $?) "takes names and units of the command line"
# Groups and conditions by value.
printf 'NB,n,t\n1e+05,1,1\n1e+05,2,2\n007,3,3.05\n7,4,4\n' >a.csv
printf 'NB,n,t\n100000,1,1.1\n100000.0,2,2.1\n7.0,3,3.1\n-0,4,4.2\n0,1,1\n' >b.csv
check "numbers written differently" "$ASSAY" fit a.csv b.csv --terms 1 --by NB --response t -o groups.json
report $([ "$(grep -o '"labels": {"NB": "[^"]*"}' groups.json | tr -dc '0-9\n' | tr '\n' ' ')" = "0 7 100000 " ]; echo $?) \
    "are one group each"
check "a condition" "$ASSAY" fit a.csv b.csv --terms 1 --where "NB == '1e5'" --response t -o where.json
report $(grep -q '"rows": 4' where.json; echo $?) "compares by value"
check "new measurements in other units" "$ASSAY" model check seconds.json --data ms.zip
report $(grep -qE '^all +120 ' .out; echo $?) "are compared in the model's"
finish
