#!/bin/bash
# assay predict hpl: a dgemm model and scenarios in, times out.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
contains() { grep -qE -- "$2" "$1" || { echo "# '$1' does not match: $2"; sed 's/^/# /' "$1" | head -20; return 1; } >&2; }
output() { contains "$scratch/.out" "$1"; }

# Two cores whose dgemm is 6.25e-11 mnk and half as fast, exactly; m, n from 100 to 5000, k from 32 to 256.
awk 'BEGIN {
    print "core,m,n,k,duration"
    for (c = 1; c <= 2; c++)
        for (i = 0; i < 40; i++) {
            m = 100 + i * 4900 / 39; n = 100 + (i * 17 % 40) * 4900 / 39; k = 32 + (i * 7 % 29) * 8
            printf "%d,%.17g,%.17g,%d,%.17g\n", c, m, n, k, c * 6.25e-11 * m * n * k
        }
}' >dgemm.csv
check "a model of dgemm" "$ASSAY" fit dgemm.csv --terms mnk --by core -o model.json

# The limit in which only gamma3 counts: 2/3 N^3 gamma3, for the mean of 6.25e-11 and 12.5e-11.
check "one scenario" "$ASSAY" predict hpl model.json --set N=4096 --set NB=64 --set P=1 --set Q=1
report $(output '^time +2\.14748'; echo $?) "two thirds of N cubed times gamma3"
report $(output '^time_closed +2\.14748'; echo $?) "the closed form says the same"
report $(output '^note: every process is the mean of 2 groups'; echo $?) "it says which speed was used"
check "the slowest" "$ASSAY" predict hpl model.json --set N=4096 --set NB=64 --set P=1 --set Q=1 --set speed=slowest
report $(output '^time +2\.86331'; echo $?) "is a third slower than the mean"
report $(output "as slow as '2', the slowest of 2 groups"; echo $?) "and named"

printf 'name,N,NB,P,Q,latency,bandwidth\nsmall,8000,128,2,2,1us,10GB/s\n"large, ""far""",40000,128,2,4,1.5e-6,12.5e9\n' >scenarios.csv
check "a table of scenarios" "$ASSAY" predict hpl model.json --scenario scenarios.csv -o prediction.csv
report $([ "$(wc -l <prediction.csv)" -eq 3 ]; echo $?) "a line each"
report $(contains prediction.csv '^name,N,NB,P,Q,latency,bandwidth,speed,time,gflops,'; echo $?) "its columns"
report $(contains prediction.csv '^small,8000,128,2,2,1e-06,10000000000,mean,'; echo $?) "units are understood in fields"
report $(contains prediction.csv '^"large, ""far""",40000'; echo $?) "names are quoted"
report $(contains prediction.csv 'warning: m reaches 19936, 3.99 times the largest calibrated \(5000\)'; echo $?) \
    "leaving the domain is said, with the factor"
report $(! grep '^small' prediction.csv | grep -q warning; echo $?) "and only where it is left"
check "JSON" "$ASSAY" predict hpl model.json --scenario scenarios.csv --json
report $(output '"sha256": "'"$(sha256sum model.json | cut -d' ' -f1)"'"'; echo $?) "JSON names the model by its hash"
report $(output '"name": "large, \\"far\\"", "N": 40000,.*"warnings": \["m reaches'; echo $?) "and has the scenarios"
check "--set for what the table lacks" sh -c "printf 'N,NB,P,Q\\n8000,128,2,2\\n' >grid.csv
    '$ASSAY' predict hpl model.json --scenario grid.csv --set latency=1us --set bandwidth=1GB/s"
check "a table on standard input" sh -c "'$ASSAY' predict hpl model.json --scenario - <scenarios.csv"

set -- predict hpl model.json --set N=1000 --set NB=100 --set P=2 --set Q=2
refuse "a network that is not given" 2 "the latency is not given; a grid of 2 x 2 processes needs" "$ASSAY" "$@"
refuse "a parameter that is missing" 2 "the parameter 'Q' .* is not given" \
    "$ASSAY" predict hpl model.json --set N=1000 --set NB=100 --set P=2
refuse "an unknown parameter" 2 "there is no parameter 'latancy'; did you mean 'latency'" "$ASSAY" "$@" --set latancy=1us
refuse "a wrong unit" 2 "latency: '1GB' is not a time" "$ASSAY" "$@" --set latency=1GB
refuse "out of range" 2 "P: '0' is out of range; expected 1 to" "$ASSAY" predict hpl model.json --set P=0
refuse "not whole" 2 "N: '10.5' is not a whole number" "$ASSAY" predict hpl model.json --set N=10.5
refuse "an unknown word" 2 "speed: there is no 'fast'; expected one of mean, slowest" "$ASSAY" "$@" --set speed=fast
refuse "set twice" 2 "'N' is set twice" "$ASSAY" "$@" --set N=2000
refuse "set to nothing" 2 "'N' sets nothing; expected NAME=VALUE" "$ASSAY" predict hpl model.json --set N
refuse "blocks larger than the matrix" 2 "NB = 200 is larger than N = 100" \
    "$ASSAY" predict hpl model.json --set N=100 --set NB=200 --set P=1 --set Q=1
refuse "given twice" 2 "'N' is a column here and set on the command line" \
    "$ASSAY" predict hpl model.json --scenario scenarios.csv --set N=1
printf 'N,NB,P,Q\n100,10,1,1\n100,10,1,\n' >hole.csv
refuse "an empty field" 2 "hole.csv:3.*Q: there is no value" "$ASSAY" predict hpl model.json --scenario hole.csv
printf 'N,NB,P,Q\n100,10,1,1\n100,1O,1,1\n' >typo.csv
refuse "a number with junk" 2 "typo.csv:3:5: NB: '1O' is not" "$ASSAY" predict hpl model.json --scenario typo.csv
printf 'N,NB,P,QQ\n1,1,1,1\n' >column.csv
refuse "an unknown column" 2 "column.csv:1: there is no parameter 'QQ'" "$ASSAY" predict hpl model.json --scenario column.csv
printf 'N,NB,P,Q\n' >none.csv
refuse "no scenarios" 2 "there are no scenarios" "$ASSAY" predict hpl model.json --scenario none.csv
printf 'N,NB,P,Q\n100,10,1,1\n100,10,2,1\n' >network.csv
refuse "a scenario that the plugin refuses" 2 "scenario in line 3 of 'network.csv'.*the latency is not given" \
    "$ASSAY" predict hpl model.json --scenario network.csv
refuse "a method that does not exist" 2 "there is no plugin 'predict-hlp'; did you mean 'predict-hpl'" \
    "$ASSAY" predict hlp model.json
refuse "a missing model" 2 "nothing.json" "$ASSAY" predict hpl nothing.json
echo '{"a": 1}' >other.json
refuse "a JSON that is no model" 2 "other.json:1:1: this is not a model file of assay" "$ASSAY" predict hpl other.json
"$ASSAY" fit dgemm.csv --terms 1+m+n --by core -o sums.json >/dev/null
refuse "a model without m*n*k" 2 "the model 'sums.json' has no term m\*n\*k" "$ASSAY" predict hpl sums.json
sed 's/core,m/core,x/' dgemm.csv >x.csv; "$ASSAY" fit x.csv --terms x*n*k -o x.json >/dev/null
refuse "a model of something else" 2 "has the factor 'x'; expected a model of dgemm" "$ASSAY" predict hpl x.json
sed 's/"unit": null}/"unit": "By"}/' model.json >bytes.json
refuse "a model of no time" 2 "is in 'By'; expected a time" "$ASSAY" predict hpl bytes.json
sed 's/"response": {"name": "duration", "unit": null}/"response": {"name": "duration", "unit": "ms"}/' model.json >ms.json
check "a model in milliseconds" "$ASSAY" predict hpl ms.json --set N=4096 --set NB=64 --set P=1 --set Q=1
report $(output '^time +0\.00214748'; echo $?) "is understood"
sed 's/"estimate": [^,]*/"estimate": -1/' model.json >negative.json
refuse "a negative speed" 2 "the coefficient of m\*n\*k of the group '1' in 'negative.json' is -1" \
    "$ASSAY" predict hpl negative.json
refuse "too few operands" 2 "predict" "$ASSAY" predict hpl

# A grid that is too tall for the matrix.
check "a panel that no process has its share of" "$ASSAY" predict hpl model.json --set N=1000 --set NB=1000 \
    --set P=8 --set Q=1 --set latency=0s --set bandwidth=1e15B/s
report $(output '^warning: the published factorisation term is negative for 1 of 1 panels'; echo $?) "is said"
report $(output '^warning: some processes have no rows or columns: the matrix has 1 x 1 blocks, the grid 8 x 1 processes'; echo $?) \
    "and so are processes with nothing to do"
report $(! output '^[a-z_0-9]+ +-[0-9]' 2>/dev/null; echo $?) "no time is negative"

# The units of the written table.
check "a written prediction" "$ASSAY" predict hpl model.json --set N=1000 --set NB=100 --set P=1 --set Q=1 -o written.csv
report $(contains written.csv.datapackage.json '"path": *"written.csv"'; echo $?) "a data package beside it describes it"
names=$(grep -o '"name": *"[^"]*"' written.csv.datapackage.json | sed 's/.*"\([^"]*\)"$/\1/' | tail -n +3 | paste -sd,)
report $([ "$names" = "$(head -1 written.csv)" ]; echo $?) "column by column"
report $(tr -d '\n' <written.csv.datapackage.json | grep -q '"gamma3",[^}]*"s/{flop}"'; echo $?) "with its unit"
finish
