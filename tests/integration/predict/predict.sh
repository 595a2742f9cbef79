#!/bin/bash
# assay predict and export: models and scenarios in; tables with intervals, JSON, texts out.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../made-run.sh"
cd "$scratch" || exit 1
export ASSAY_PATH=$ASSAY_BUILD/tests/plugins

# model UNIT LARGEST TERMS BY ROWS: a model of dgemm by the terms TERMS; a line of ROWS is a label, the estimates, the
# coefficients of sigma, and the standard error of the first estimate.
model() {
    awk -v unit="$1" -v largest="$2" -v terms="$3" '
        BEGIN {
            count = split(terms, name, " ")
            printf "{\"assay_model\": 2, \"kind\": \"linear\", \"response\": {\"name\": \"duration\", \"unit\": %s}, ", unit
            printf "\"weights\": null, \"by\": [\"core\"], \"terms\": ["
            for (t = 1; t <= count; t++) {
                printf "%s{\"name\": \"%s\", \"unit\": null, \"factors\": [", (t > 1) ? ", " : "", name[t]
                n = name[t] == "1" ? 0 : split(name[t], factor, "*")
                for (f = 1; f <= n; f++) printf "%s{\"column\": \"%s\", \"power\": 1}", (f > 1) ? ", " : "", factor[f]
                printf "]}"
            }
            printf "], \"columns\": [], \"origin\": {\"plugin\": \"fit-linear\", \"version\": \"1\", \"engine\": \"1\", "
            printf "\"created\": \"2020-01-01T00:00:00Z\", \"rows\": 9, \"seed\": 1, \"settings\": {}, \"inputs\": []}, "
            printf "\"units\": {}, \"skipped\": [], \"groups\": ["
        }
        {
            printf "%s\n{\"labels\": {\"core\": \"%s\"}, \"rows\": 9, \"values\": {}, \"notes\": [], \"parts\": [{\"kind\": \"whole\", \"estimates\": [", (NR > 1) ? "," : "", $1
            for (t = 1; t <= count; t++)
                printf "%s{\"term\": \"%s\", \"estimate\": %s, \"standard_error\": null, \"t\": null, \"p\": null}", (t > 1) ? ", " : "", name[t], $(t + 1)
            printf "], \"covariance\": ["
            for (i = 1; i <= count; i++) {
                printf "%s[", (i > 1) ? ", " : ""
                for (j = 1; j <= count; j++) printf "%s%.17g", (j > 1) ? ", " : "", i == 1 && j == 1 ? $NF * $NF : 0
                printf "]"
            }
            printf "], \"noise\": {\"kind\": \"N-2\", \"distribution\": \"normal\", \"constant\": 0, \"coefficients\": ["
            for (t = 1; t <= count; t++) printf "%s%s", (t > 1) ? ", " : "", name[t] == "1" ? 0 : $(count + t + 1)
            printf "]}, \"values\": {}, \"domain\": {\"m\": [1, %s], \"n\": [1, %s], \"k\": [1, %s]}}]}", largest, largest, largest
        }
        END { print "]}" }'
}
# Two cores whose dgemm is 6.25e-11 mnk and half as fast, exactly; the first is known to 1 %.
two='1 6.25e-11 0 6.25e-13
2 12.5e-11 0 0'
model null 5000 'm*n*k' <<<"$two" >model.json

# time = 2 + 3 size, s
model '"s"' 100 '1 size' <<<'1 2 3 0 0 0' >size.json
# The limit in which only gamma3 counts: 2/3 N^3 gamma3, for the mean of 6.25e-11 and 12.5e-11.
set -- predict hpl dgemm=model.json --set N=4096 --set NB=64 --set P=1 --set Q=1
check "one scenario" "$ASSAY" "$@" --set speed=mean
report $(output '^time +2\.1475 s'; echo $?) "two thirds of N cubed times gamma3"
report $(output '^time_closed +2\.1475 s'; echo $?) "the closed form says the same"
report $(output '^note: every process has the mean speed of the 2 groups of the model$'; echo $?) "it says which speed was used"
report $(output "^note: the unit of the response 'duration' in 'model.json' is not known; seconds are assumed"; echo $?) "and which unit"
check "the slowest" "$ASSAY" "$@"
report $(output '^time +2\.8633 s'; echo $?) "is a third slower than the mean"
report $(output "has the speed of '2', the slowest of the 2 groups"; echo $?) "and named"
check "the model's role may be left out" "$ASSAY" predict hpl model.json "${@:4}"
check "a plugin says what it takes" "$ASSAY" predict hpl --parameters
report $(output '^bandwidth +B/s' && output '^dgemm +linear +the time of dgemm' && output '^speed +mean, slowest, waiting +slowest'; echo $?) \
    "with units, defaults and ranges"
check "and as JSON" "$ASSAY" predict hpl --parameters --json
report $(output '"method": +"hpl"' && output '"name": +"bandwidth"'; echo $?) "for programs"
check "--help has it too" "$ASSAY" predict hpl --help
report $(output '^Usage: assay predict' && output '^bandwidth +B/s'; echo $?) "after the command's own"
check "a thousand million panels" timeout 5 "$ASSAY" predict hpl model.json --set N=1e9 --set NB=1 --set P=1 --set Q=1
check "an implausible number" "$ASSAY" predict hpl model.json --set N=4096 --set NB=64 --set P=1 --set Q=2 \
    --set latency=1us --set bandwidth=10
report $(output '^warning: bandwidth is 10 B/s, but plausible values are 1 MB/s to 10 TB/s'; echo $?) "is warned of, with its unit"

# Draws: time is 2/3 N^3 gamma3, and gamma3 of the first core normal with a deviation of 1 %.
model '"s"' 5000 'm*n*k' <<<"${two%%$'\n'*}" >one.json
check "an interval" "$ASSAY" predict hpl one.json "${@:4}" --draws 400 -o drawn.csv
report $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    NR == 2 { t = $at["time"]; low = ($at["time_low"] / t - 1) / -0.0196; high = ($at["time_high"] / t - 1) / 0.0196
              exit !(low > 0.8 && low < 1.2 && high > 0.8 && high < 1.2 && !("swap_low" in at)) }' drawn.csv; echo $?) "is that of the coefficient"
for draws in 0 1; do
    refuse "$draws draws" 2 "--draws '$draws' is not a whole number from 2 to 100000" "$ASSAY" predict hpl one.json "${@:4}" --draws $draws
done
check "the same seed" "$ASSAY" predict hpl one.json "${@:4}" --draws 400 --seed 1 -o again.csv
report $(cmp -s drawn.csv again.csv; echo $?) "gives the same interval"

printf 'name,N,NB,P,Q,latency,bandwidth [GB/s]\nsmall,8000,128,2,2,1us,10\n"large, ""far""",40000,128,2,4,1.5e-6,12.5GB/s\n' >scenarios.csv
check "a table of scenarios" "$ASSAY" predict hpl model.json --scenario scenarios.csv -o prediction.csv
report $([ "$(wc -l <prediction.csv)" -eq 3 ]; echo $?) "a line each"
report $(contains prediction.csv '^name,N,NB,P,Q,latency,bandwidth,speed,panels,ranks-per-card,panel-rate,time,gflops,'; echo $?) "its columns"
report $(contains prediction.csv '^small,8000,128,2,2,1e-06,10000000000,slowest,'; echo $?) "units are understood in fields and names"
report $(contains prediction.csv '^"large, ""far""",40000'; echo $?) "names are quoted"
printf 'N,NB,P,Q,latency [us],bandwidth [GB/s]\n8000,128,2,2,1.,.5e1\n' >pointed.csv
check "numbers that end in a point" "$ASSAY" predict hpl model.json --scenario pointed.csv -o pointed.out.csv
report $(contains pointed.out.csv '^,8000,128,2,2,1e-06,5000000000,'; echo $?) "have the unit of their header"
report $(contains prediction.csv "warning: .* % of the total that 'model.json' predicts is extrapolated; .* 'm' is 3.99 times the greatest"; echo $?) \
    "leaving the domain is said, with the factor"
report $(! grep '^small' prediction.csv | grep -q warning; echo $?) "and only where it is left"
names=$(grep -o '"name": *"[^"]*"' prediction.csv.datapackage.json | sed 's/.*"\([^"]*\)"$/\1/' | tail -n +3 | paste -sd,)
is "a data package beside it describes it, column by column" "$names" "$(head -1 prediction.csv)"
report $(tr -d '\n' <prediction.csv.datapackage.json | grep -q '"gamma3",[^}]*"s/{flop}"'; echo $?) "with units"
check "JSON" "$ASSAY" predict hpl model.json --scenario scenarios.csv --json
report $(output '"sha256": "'"$(sha256sum model.json | cut -d' ' -f1)"'"'; echo $?) "JSON names the model by its hash"
report $(output '"name": "large, \\"far\\""' && output '"scenarios.time": "s"'; echo $?) "and has the scenarios, with units"
check "several values" sh -c "printf 'N,NB,P\\n8000,128,2\\n' | '$ASSAY' predict hpl model.json --scenario - \
    --set Q=2,4 --set latency=1us,2us,3us --set bandwidth=1GB/s"
report $([ "$(grep -c '^8000\|^ *8000' "$scratch/.out")" -eq 6 ]; echo $?) "are all combined with the table on standard input"

for range in 1us..3us:1us 1..3us:1 1us,2us..3us:1us 1e-6..3e-6:1e-6; do
    check "the range $range" "$ASSAY" predict travel size.json --set size=8 --set wait=$range -o range.csv
    is "has its unit" "$(tail -n +2 range.csv | cut -d, -f3 | paste -sd' ')" "1e-06 2e-06 3e-06"
done
refuse "two units in a range" 2 "'1us' in the range of 'wait' is not a number" "$ASSAY" predict travel size.json --set size=8 --set wait=1us..1ms:1us

# Tables that the plugin declares: the host writes them, and only those that are asked for.
set -- predict hpl model.json --set N=4096 --set NB=64,256 --set P=1 --set Q=1
check "the table of panels" "$ASSAY" "$@" --plot panels=panels.csv -o sweep.csv
is "has a row a panel, with its scenario" "$(awk -F, 'NR > 1 { n[$1]++ } END { print n[1], n[2] }' panels.csv)" "64 16"
is "and a line of names" "$(head -1 panels.csv)" "scenario,panel,panel_time,panel_factorisation,panel_broadcast,panel_update,panel_swap"
report $(awk -F, 'FNR == 1 { file++; for (i = 1; i <= NF; i++) at[file, $i] = i; next }
    file == 1 { sum[$1] += $at[1, "panel_time"] } file == 2 { t = $at[2, "time"]; bad += !(sum[FNR - 1] / t > 1 - 1e-12 && sum[FNR - 1] / t < 1 + 1e-12) }
    END { exit bad > 0 || file != 2 }' panels.csv sweep.csv; echo $?) "their times are the time"
report $(tr -d '\n' <panels.csv.datapackage.json | grep -q '"panel_time",[^}]*"s"'; echo $?) "its units are beside it"
check "help names the tables" "$ASSAY" predict hpl --help
report $(output '^panels +curve +the time of each panel' && output '^panels +panel_swap +s +time to swap rows'; echo $?) "their shape and columns"
check "plugins are listed" "$ASSAY" plugins
report $(output "^predict +hpl +[0-9.]+ +HPL's time" && output '^export +cluster' && output '^fit +other-abi .*the plugin has ABI 7, but'; echo $?) "by kind, with a line each"
check "and shown" "$ASSAY" plugins show hpl
report $(output '^dgemm +linear +the time of dgemm' && output '^bandwidth +B/s' && output '^result +gflops +Gflop/s +more +' && output '^file +/.*/predict-hpl.so$'; echo $?) \
    "with inputs, parameters, columns and file"
check "and as JSON" "$ASSAY" plugins show predict-travel --json
report $(output '"better": *""' && output '"table": *"way"'; echo $?) "for programs"
refuse "a name of none" 2 "there is no plugin 'hlp'; 'assay plugins' lists all" "$ASSAY" plugins show hlp
check "a name of two plugins" "$ASSAY" plugins show travel
report $(output '^summary +how long messages travel$' && output '^summary +how long a message travels, as a text$' && output '^file .*/predict-travel.so$' && output '^file .*/export-travel.so$'; echo $?) \
    "shows both"
check "of a fit and a predictor" "$ASSAY" plugins show roofline --json
is "and as JSON" "$(python3 -c 'import json, sys; print(*json.load(sys.stdin))' <.out)" "fit-roofline predict-roofline"
refuse "a table that is not there" 2 "predict-hpl has no table and no column of numbers called 'panel'; 'assay predict hpl --help' lists them" "$ASSAY" "$@" --plot panel=p.csv
refuse "two outputs in one file" 2 "p.csv" "$ASSAY" "$@" --plot panels=p.csv -o ./p.csv
check "a table of intervals" "$ASSAY" predict travel size.json --set size=8 --plot way=way.csv
is "has lanes and words" "$(tail -1 way.csv)" "1,b,13,26,<hop>"

# Pictures: of a table, of a column over what varies, of intervals.
check "a curve as text, SVG and HTML" "$ASSAY" "$@" --plot panels --plot panels=panels.svg --plot time=time.html
report $(output '^ +panel_update, s' && output '^ +panel$'; echo $?) "has its axes on the terminal"
is "a chart for each curve" "$(grep -c '<g transform' panels.svg)" 5
is "and in it a line for each scenario" "$(grep -c 'class="l"' panels.svg)" 10
is "which says the scenario" "$(grep -o '<title>[^<]*NB[^<]*' panels.svg | sort | uniq -c | sed 's/^ *//' | paste -sd' ')" \
    "5 <title>scenario 1: NB = 64 5 <title>scenario 2: NB = 256"
report $(head -1 time.html | grep -q '^<!DOCTYPE html>' && contains time.html '>NB</text>' && contains time.html '>time, s</text>'; echo $?) "a column over what varies"
check "intervals" "$ASSAY" predict travel size.json --set size=8 --plot way --plot way=way.svg --plot way=way.json
report $(output '^a +\|A{32,33} +\|$' && output '^b +\| +A{32,33}\|$' && output '^ +A <hop>$'; echo $?) "are lanes of characters"
is "bars in an SVG" "$(grep -c '&lt;hop&gt;: 13 s to 26 s</title></rect>' way.svg)" 1
report $(tr -d '\n' <way.json | grep -q '{"ph": "X", "pid": 1, "tid": 1, "ts": 13000000.000, "dur": 13000000.000, "name": "<hop>"}\]}$'; echo $?) "and trace events"
refuse "what cannot be drawn" 2 "no table and no column of numbers called 'where'" "$ASSAY" predict travel size.json --set size=8 --plot where
refuse "another kind of file" 2 "'panels' cannot be written into 'p.txt'; expected a file name that ends in one of .csv .svg .html" "$ASSAY" "$@" --plot panels=p.txt
set -- predict hpl model.json --set NB=64 --set P=1 --set Q=1
check "a column over one of two that vary" "$ASSAY" "$@" --set N=1000,2000 --plot time=joined.svg
is "is a line: what is not set does not vary" "$(grep -c 'class="l"' joined.svg)" 1
refuse "a column over words" 2 "cannot draw 'time': no number differs between the scenarios" "$ASSAY" "$@" --set N=1000 --set speed=mean,slowest --plot time
check "a column of many scenarios that are written, too" "$ASSAY" "$@" --set N=64..11000:1 -o many.csv --plot gflops=many.svg
is "has all of them" "$(awk -F M '/class="l"/ { n += gsub(/[ML]/, "") } END { print n }' many.svg) $(wc -l <many.csv)" "10937 10938"
refuse "a column over nothing" 2 "no number differs between the scenarios" "$ASSAY" predict travel size.json --set size=8 --plot time
set -- predict hpl model.json --set P=1 --set Q=1
check "a column over one of two numbers" "$ASSAY" "$@" --set N=1000,2000,4000 --set NB=64,128 --plot time=two.svg --plot time
is "is a line for each value of the other" "$(grep -c 'class="l"' two.svg)" 2
is "with its name" "$(grep -o '<title>NB = [^<]*' two.svg | sort | uniq -c | sed 's/^ *//' | paste -sd' ')" "1 <title>NB = 128 1 <title>NB = 64"
report $(output 'NB = 64' && output 'NB = 128'; echo $?) "and on the terminal"
check "a column over what another number follows" "$ASSAY" predict hpl model.json --set N=4000 --set NB=64 --set P=1..8 --set Q=8/P \
    --set latency=1us --set bandwidth=10GB/s --plot time=grids.svg
is "is one line" "$(grep -c 'class="l"' grids.svg)" 1
check "with draws" "$ASSAY" "$@" --set N=1000,2000,4000 --set NB=64,128 --draws 20 --plot time=two.svg
is "has the ends of each interval" "$(grep -c 'class="l"' two.svg)" 6
refuse "trace events of a method without intervals" 2 "'time' cannot be written into 't.json'; trace events need a table of time intervals, which predict-hpl does not have; expected a file name that ends in one of .svg .html" \
    "$ASSAY" "$@" --set NB=64 --set N=1000,2000 --plot time=t.json
refuse "of a column beside a table of them" 2 "trace events need a table of time intervals \(way\); expected" "$ASSAY" predict travel size.json --set size=8,9 --plot time=t.json
refuse "intervals of two scenarios" 2 "cannot draw 'way' for 2 scenarios" "$ASSAY" predict travel size.json --set size=8,9 --plot way

# What makes the number: 2/3 N^3 gamma3, which is the term m*n*k alone; or 2 + 3 size + wait.
check "an explanation" "$ASSAY" predict hpl model.json --set N=4096 --set NB=64 --set P=2 --set Q=2 --set latency=1us --set bandwidth=1GB/s --explain --json
is "has shares and effects that add up to all of it, and to 1 %" "$(python3 -c 'import json, sys; d = json.load(sys.stdin)
print([p["part"] for p in d["parts"]], round(sum(p["share"] for p in d["parts"]), 9), round(sum(abs(e["effect"]) for e in d["effects"]), 3))' <.out)" \
    "['factorisation', 'broadcast', 'update', 'swap'] 100.0 1.0"
check "of two terms and a parameter" "$ASSAY" predict travel size.json --set size=8 --set wait=24 --explain --json
is "each is a hundredth of its share" "$(python3 -c 'import json, sys; print(*[(e["name"], round(e["effect"], 4)) for e in json.load(sys.stdin)["effects"]])' <.out)" \
    "('1', 0.04) ('size', 0.48) ('size', 0.48) ('wait', 0.48)"
report $(output '"explained": *"time"'; echo $?) "of which column is said"
refuse "of two scenarios" 2 "cannot explain 2 scenarios; set one value for each" "$ASSAY" predict travel size.json --set size=8,9 --explain -o explained.csv
report $(! test -e explained.csv; echo $?) "writes no prediction"
refuse "of two rows" 2 "cannot explain 2 rows" "$ASSAY" predict travel size.json --set size=8 --set hops=2 --explain
refuse "of no answer" 2 "cannot explain time: its value is nan" "$ASSAY" predict travel size.json --set size=13 --explain

# The best of many: all are run where the budget suffices, few where not.
set -- predict hpl model.json --set N=20000 --set NB=16..512:16 --set P=1..16 --set Q=1,2,4,8 --set latency=1us --set bandwidth=1GB/s
check "all combinations" "$ASSAY" "$@" -o all.csv
best=$(sort -t, -k12,12g all.csv | sed -n 2p | cut -d, -f2-5)
check "a search in all of them" "$ASSAY" "$@" --search 10000 -o best.csv
is "finds the best" "$(sed -n 2p best.csv | cut -d, -f2-5)" "$best"
is "and nine more" "$(wc -l <best.csv)" 11
report $(output '^note: the best of 2048 evaluated scenarios \(of 2048 combinations\) are shown, by the least time; best first$'; echo $?) "says of how many"
check "a search under a budget" "$ASSAY" "$@" --search 150 -o few.csv
is "finds it in a tenth of the runs" "$(sed -n 2p few.csv | cut -d, -f2-5)" "$best"
report $(output '^note: the best of 150 evaluated scenarios \(of 2048 combinations\)'; echo $?) "and says so"
check "a grid of 64 processes" "$ASSAY" predict hpl model.json --set N=20000 --set NB=32000,64,128 --set P=1..64 --set Q=64/P \
    --set latency=1us --set bandwidth=1GB/s --search 1000 -o grid.csv
is "has only whole numbers" "$(awk -F, 'NR > 1 { n += $4 * $5 == 64 } END { print n }' grid.csv)" 10
report $(output '^note: the best of 21 evaluated scenarios \(of 21 combinations\)' && output '^note: combinations left out, because a value is not possible: 171; the first: Q=64/P: .*not a whole number$' &&
    output '^note: scenarios for which the method has no answer: 7; the first: the block size NB = 32000 is larger than the order of the matrix, N = 20000;'; echo $?) "and says what it leaves out"
check "few of many grids" "$ASSAY" predict hpl model.json --set N=20000 --set NB=64,128 --set P=1..64 --set Q=64/P \
    --set latency=1us --set bandwidth=1GB/s --search 100
report $(output '^note: the best of 14 evaluated scenarios \(of at most 128 combinations\)' && output '^note: combinations left out, because a value is not possible: some;'; echo $?) \
    "are found, and those that are left out are not counted as such"
check "a list of grids" "$ASSAY" predict hpl model.json --set N=2000 --set NB=64 --set P=1..4 --set Q=4/P --set latency=1us --set bandwidth=1GB/s
report $(output '^note: combinations left out, because a value is not possible: 1; the first: Q=4/P: .*1\.33'; echo $?) "does so, too"
refuse "an expression over nothing that is set" 2 "Q=64/P: the expression uses 'P', which has no value; set" "$ASSAY" predict hpl model.json --set N=9 --set NB=1 --set Q=64/P
refuse "an unknown name in one" 2 "Q: unknown name 'R', expected one of N, NB, P, " "$ASSAY" predict hpl model.json --set N=9 --set NB=1 --set Q=64/R
set -- predict hpl model.json --set N=20000 --set NB=64,128 --set P=1,2,4 --set Q=1,2 --set latency=1us --set bandwidth=1GB/s
check "a search for a time" "$ASSAY" "$@" --search 1h --goal gflops
report $(output '^note: the best of 12 evaluated scenarios .of 12 combinations. are shown, by the greatest gflops; best first$'; echo $?) "ends when it finds nothing new, and goes by the column that is named"
refuse "a search for no time" 2 "--search '0s' is no time above 0 and up to 2592000 s" "$ASSAY" "$@" --search 0s
refuse "a search for what is neither" 2 "--search 'long' is neither a number of runs from 1 to 10000 nor a time; expected one of them, such as 500 or 5min" "$ASSAY" "$@" --search long
refuse "a goal that is none" 2 "predict-hpl has no column 'swap' with a goal; 'assay plugins show hpl' lists them" "$ASSAY" "$@" --search 9 --goal swap
refuse "a search without a goal" 2 "--search is not possible with travel: no column of its result" "$ASSAY" predict travel size.json --set size=8,9 --search 9
refuse "a search in a table" 2 "--search is not possible with hpl: scenarios come from a table" "$ASSAY" predict hpl model.json --scenario scenarios.csv --search 9

# From an archive: the role says which experiment's; the model is the one that a fit of the archive gives.
calls=$(made_dgemm calls 1e-6 1e-10 2>.err) others=$(made_dgemm others 1e-6 1e-10 other 2>>.err) || sed 's/^/# /' .err
"$ASSAY" archive cat "$calls" design.csv >calls.csv
set -- --set N=4096 --set NB=64 --set P=1 --set Q=1
"$ASSAY" fit "$calls" -o by-hand.json >/dev/null
"$ASSAY" predict hpl by-hand.json "$@" -o by-hand.csv >/dev/null
check "a model from an archive" "$ASSAY" predict hpl --from "$calls" "$@" -o from.csv --json
is "is that of a fit" "$(cut -d, -f-12 from.csv)" "$(cut -d, -f-12 by-hand.csv)"
report $(contains from.csv "'$calls' for the role 'dgemm'"; echo $?) "is said"
hash=$(sha256sum <"$calls")
report $(output '"experiment": *"dgemm"' && output '"sha256": *"'"${hash%% *}"; echo $?) "and the archive's hash is kept"
for given in dgemm=model.json model.json; do
    check "a model that is given, $given" "$ASSAY" predict hpl $given --from "$calls" "$@"
    report $(output "^note: '$calls' is not used, because a model is given for the role 'dgemm'" && output '^time +2.86'; echo $?) "is preferred"
done
cp "$calls" copy.csv
refuse "an output that is an archive" 2 "the output './copy.csv' is also an input" "$ASSAY" predict hpl --from copy.csv "$@" -o ./copy.csv
refuse "a picture that is an archive" 2 "the output 'copy.csv' is also an input" "$ASSAY" predict hpl --from copy.csv "$@" --plot panels=copy.csv
report $(cmp -s "$calls" copy.csv; echo $?) "leave the archive as it was"
refuse "an archive that fills no role" 2 "no role takes a model of the experiment 'other'; expected an archive of: dgemm" "$ASSAY" predict hpl --from "$others" "$@"
awk -F, 'NR == 1 { print $0 ",duration" } NR > 1 { print $0 "," 1e-6 + 1e-10 * $1 * $2 * $3 }' calls.csv >plain.csv
refuse "a table" 2 "plain.csv: no role takes a model of a file that names no experiment; expected an archive of: dgemm" "$ASSAY" predict hpl --from plain.csv "$@"
refuse "a method whose roles name no experiment" 2 "; fit it by 'assay fit' and give ROLE=MODEL instead of --from" "$ASSAY" predict travel --from "$calls" --set size=8

# A role that is a file, threads, and a prediction that is stopped.
printf '<platform/>' >platform.xml
check "a role that is a file" "$ASSAY" predict travel size.json platform=platform.xml --set size=8 --threads 3 --json
hash=$(sha256sum <platform.xml)
report $(output "platform.xml has 11 bytes, '<pl...', and the hash ${hash:0:8}; 3 threads" && output '"sha256": "'"${hash%% *}"; echo $?) "gives bytes and hash to the plugin, and the hash to the result"
refuse "a model for it" 2 "size.json.*the role 'time'|2 models are given for the role" "$ASSAY" predict travel time=size.json time=size.json platform=size.json --set size=8
"$ASSAY" predict travel size.json --set size=8 --set stop=begun -o stopped.csv >.out 2>.err & predicting=$!
eventually test -e begun
kill -TERM $predicting
wait $predicting
is "a prediction that is stopped" "$?: $(cat .err)" "4: assay: interrupted in scenario 1; no file was written"
report $(! test -e stopped.csv; echo $?) "leaves no file"

# The verdict on a model is said by whatever uses it, once a file, and is data.
graded() { sed 's/"rows": 9, "values": {}/"rows": 9, "values": {"cv_relative": '"$1"', "cv_median_relative": 0.015, "settings": 9}/' "$2"; }
graded 0.69 model.json >bad.json
graded 0.02 model.json >good.json
sentence="'bad.json' is not usable for prediction: cross-validated error 69 % in the worst group \\(median 1.5 %\\) over .*; 0 of 2 groups are usable, the worst is '1'"
check "a prediction by a model that is not usable" "$ASSAY" predict hpl bad.json --scenario scenarios.csv -o bad.csv
report $([ "$(grep -cE "^assay: warning: $sentence" .err)" -eq 1 ] && [ "$(grep -cE "^warning: $sentence" .out)" -eq 1 ]; echo $?) "warns once, and says why"
report $([ "$(grep -c "warning: 'bad.json' is not usable for prediction: cross" bad.csv)" -eq 2 ]; echo $?) "in the remarks of the table, too"
check "as JSON" "$ASSAY" predict hpl bad.json --scenario scenarios.csv --json
report $(output '"grade": "not usable"' && output '"verdict": "not usable for prediction: cross' && contains .err "^assay: warning: 'bad.json' is"; echo $?) "the grade is a word"
check "a usable model" "$ASSAY" predict hpl good.json --scenario scenarios.csv --json
report $(output '"grade": "usable"' && ! grep -q 'usable' .err; echo $?) "is not warned of"
check "a model of unknown quality" "$ASSAY" predict hpl model.json --scenario scenarios.csv
report $(output "^note: 'model.json' was fitted to 18 rows.*; its prediction error is not known" && [ ! -s .err ]; echo $?) "is a note, not a warning"
check "its JSON" "$ASSAY" predict hpl model.json --scenario scenarios.csv --json
report $(output '"grade": "unknown"'; echo $?) "has the word"

# Ranks of a node that share a network card.
set -- predict hpl good.json --set N=40000 --set NB=128 --set P=4 --set Q=12 --set latency=1us --set bandwidth=1GB/s
check "many ranks" "$ASSAY" "$@"
report $(output '^note: each of the 48 processes is assumed to have its own network card; where the processes of a node share a card, set ranks-per-card='; echo $?) "are said to have a card each"
alone=$(sed -n 's/^swap *\([0-9.]*\) s .*/\1/p' .out)
check "that share one" "$ASSAY" "$@" --set ranks-per-card=12
report $(! grep -q 'a network card of its own' .out && sed -n 's/^swap *\([0-9.]*\) s .*/\1/p' .out | awk -v alone="$alone" '{r = $1 / alone} END {exit !(r > 11.5 && r < 12.1)}'; echo $?) \
    "swap rows at a twelfth of the bandwidth"

# What else it could be: the naive baseline, panels at their own rate, and what something better is worth.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }' "$2"; }
near() { awk -v found="$1" -v expected="$2" -v by="$3" 'BEGIN { exit !(found / expected > 1 - by && found / expected < 1 + by) }' || { echo "# $1, expected $2 to $3" >&2; return 1; }; }
check "linear scaling" "$ASSAY" "$@" -o scaled.csv --plot changes=changes.csv
report $(near "$(column gflops_linear scaled.csv)" 768 0.01; echo $?) "is 48 times 16 Gflop/s, beside what is predicted"
report $(near "$(column efficiency scaled.csv)" "$(awk -v g="$(column gflops scaled.csv)" 'BEGIN { print g / 768 }')" 1e-5; echo $?) "efficiency is of the asymptotic rate"
half=$(awk -F, '/N_half/ { print $3 }' changes.csv)
check "the order of half the rate" "$ASSAY" predict hpl good.json --set N="$half" "${@:6}" -o half.csv
report $(near "$(column gflops half.csv)" "$(awk -v g="$(column gflops scaled.csv)" 'BEGIN { print g / 2 }')" 0.01; echo $?) "has half the rate"
report $(awk -F, '/latency 10/ { l = $6 } /bandwidth 10/ { b = $6 } /network 10/ { n = $6 } /dgemm 10/ { d = $6 } /memory 10/ { m = $6 } END { exit !(l > 0 && b > l && n > b && d > n && m > 0) }' changes.csv; echo $?) \
    "what is worth most is last but memory"
set -- predict hpl model.json --set N=4096 --set NB=64 --set P=1 --set Q=1
check "dgemm alone" "$ASSAY" "$@" --plot changes=alone.csv
report $(near "$(awk -F, '/dgemm 10/ { print $6 }' alone.csv)" 10 1e-6; echo $?) "gains 10 % by 10 %"
"$ASSAY" "$@" --set panels=asymptotic -o asymptotic.csv >/dev/null
check "panels at a rate of their own" "$ASSAY" "$@" --set panel-rate=8Gflop/s -o rated.csv
report $(near "$(column factorisation rated.csv)" "$(awk -v f="$(column factorisation asymptotic.csv)" 'BEGIN { print 2 * f }')" 1e-5; echo $?) \
    "that is half of dgemm's take twice as long"
report $(near "$(column update rated.csv)" "$(column update asymptotic.csv)" 1e-12; echo $?) "and change no update"

set -- predict hpl model.json --set N=1000 --set NB=100 --set P=2 --set Q=2
printf 'N,NB,P,Q\n100,10,1,1\n100,10,2,1\n' >network.csv
printf 'N,NB,P,Q\n100,10,1,1\n100,1O,1,1\n' >typo.csv
echo '{"a": 1}' >other.json
model '"s"' 5000 '1 m n' <<<'1 1 1 1 0 0 0 0' >sums.json
model '"s"' 5000 'x*n*k m*n*k' <<<'1 1 1 0 0 0' >x.json
model '"By"' 5000 'm*n*k' <<<"$two" >bytes.json
model '"ms"' 5000 'm*n*k' <<<"$two" >ms.json
model '"s"' 5000 'm*n*k' <<<'1 -1 0 0' >negative.json
refuse "a network that is not given" 2 "the latency is not set; a grid of 2 x 2 processes needs" "$ASSAY" "$@"
refuse "a parameter that is missing" 2 "the parameter 'Q' is not set" "$ASSAY" predict hpl model.json --set N=9 --set NB=1 --set P=2
refuse "a wrong unit" 2 "latency: '1GB' is not a time" "$ASSAY" "$@" --set latency=1GB
check "blocks larger than the matrix" "$ASSAY" predict hpl model.json --set N=100 --set NB=50,200 --set P=1 --set Q=1
report $(output '^warning: scenario 2: no answer: the block size NB = 200 is larger than the order of the matrix, N = 100;'; echo $?) "have no answer"
printf 'N,NB,P,Q,latency [us],latency [ms]\n100,10,1,1,1,2\n' >columns.csv
refuse "two columns of one parameter" 2 "columns.csv:1: the parameter 'latency' has two columns; remove one" "$ASSAY" predict hpl model.json --scenario columns.csv
refuse "a column that is set, too" 2 "typo.csv:1: the parameter 'N' has a column, and a value on the command line; remove one" "$ASSAY" predict hpl model.json --scenario typo.csv --set N=9
refuse "a number with junk" 2 "typo.csv:3:5: NB: '1O' is not" "$ASSAY" predict hpl model.json --scenario typo.csv
refuse "a scenario that the plugin refuses" 2 "scenario in line 3: .*the latency is not set" \
    "$ASSAY" predict hpl model.json --scenario network.csv
refuse "a method that does not exist" 2 "there is no plugin 'predict-hlp'; did you mean 'predict-hpl'" "$ASSAY" predict hlp model.json
refuse "no model" 2 "no model is given for the role 'dgemm' .*; add dgemm=FILE" "$ASSAY" predict hpl "${@:4}"
refuse "a missing model" 2 "nothing.json" "$ASSAY" "$@" dgemm=nothing.json
refuse "a JSON that is no model" 2 "other.json" "$ASSAY" predict hpl other.json "${@:4}"
refuse "a model without m*n*k" 2 "the model 'sums.json' has no term m\*n\*k" "$ASSAY" predict hpl sums.json "${@:4}"
refuse "a model of something else" 2 "the model 'x.json' needs the column 'x'" "$ASSAY" predict hpl x.json "${@:4}" \
    --set latency=1us --set bandwidth=1GB/s
refuse "a model of no time" 2 "bytes.json.*time" "$ASSAY" predict hpl bytes.json "${@:4}"
refuse "a negative speed" 2 "the coefficient of m\*n\*k of the group '1' in 'negative.json' is -1" "$ASSAY" predict hpl negative.json \
    "${@:4}" --set latency=1us --set bandwidth=1GB/s
refuse "an output that is an input" 2 "model.json" "$ASSAY" "$@" -o model.json
check "a model in milliseconds" "$ASSAY" predict hpl ms.json --set N=4096 --set NB=64 --set P=1 --set Q=1 --set speed=mean
report $(output '^time +2\.1475 ms'; echo $?) "is understood"

# A grid that is too tall for the matrix.
check "a panel that no process has its share of" "$ASSAY" predict hpl model.json --set N=1000 --set NB=1000 \
    --set P=8 --set Q=1 --set latency=0s --set bandwidth=1e15B/s --set panels=asymptotic
report $(output '^warning: the published factorisation term is negative for 1 of 1 panels'; echo $?) "is said"
report $(output '^warning: some processes have no rows or columns: the matrix has 1 x 1 blocks for a grid of 8 x 1 processes'; echo $?) \
    "and so are processes with nothing to do"

# A text, from a plugin of the tests.
model null 100 '1 size' <<<'1 2 3 0 0 0' >travel.json
check "a text on standard output" "$ASSAY" export travel travel.json --set size=1kB
report $(output '^travel: 3002 s by travel.json' && contains .err "note: the unit of the response 'duration'"; echo $?) "with notes beside it"
check "and into a file" "$ASSAY" export travel time=travel.json --set size=10 -o travel.txt
report $(contains travel.txt '^travel: 32 s'; echo $?) "which has it"
graded 0.69 travel.json >bad-travel.json
check "a text by a model that is not usable" "$ASSAY" export travel bad-travel.json --set size=1kB
report $(output '^bad-travel: 3002 s' && [ "$(grep -c "^assay: warning: 'bad-travel.json' is not usable for prediction: " .err)" -eq 1 ]; echo $?) "has the warning beside it"
awk 'BEGIN {print "node,m,n,k,duration"; for (i = 0; i < 60; i++) {m = i * 37 % 91 + 9; n = i * 53 % 97 + 3; k = i * 29 % 89 + 11
    printf "node-%d,%d,%d,%d,%.9g\n", i % 2, m, n, k, m * n * k / 1e9 * (i % 3 + 0.5)}}' >rough.csv
sed 's/$/,/; 1s/duration,/fast/; 2,$s/,[^,]*,$/,1/' rough.csv >flat.csv
"$ASSAY" fit rough.csv --terms 'm*n*k' --by node -o bad.json >out && "$ASSAY" fit flat.csv --response fast --terms 1 -o flat.json >out
check "a header of C" "$ASSAY" export kernels bad.json flat.json -o kernels.h
report $(contains kernels.h 'bad.json \(SHA-256 .*; warning: not usable for prediction: cross-validated error [0-9.]+ %' && contains kernels.h 'flat.json' && ! grep -q 'flat.json .*warning' kernels.h &&
    contains .err "^assay: warning: 'bad.json' is not usable"; echo $?) "has it as a comment"
check "a platform" "$ASSAY" export simgrid speeds=bad.json --set latency=1us --set bandwidth=1GB/s -o platform.xml
report $(contains platform.xml '^<!-- .*bad.json \(SHA-256 .*; warning: not usable for prediction: .* -->$'; echo $?) "likewise"
refuse "an exporter that is not there" 2 "there is no plugin 'export-trawel'; did you mean" "$ASSAY" export trawel travel.json
refuse "a command that was renamed" 2 "there is no command 'generate'; did you mean 'export'" "$ASSAY" generate cluster travel.json

# HPL on 32 nodes of dahu in March 2019: the formulas have no look-ahead, imbalance or contention, and what the slowest
# of 64 cpus does is nearer to what was measured than the mean; recursive panels are nearer than asymptotic ones.
if [ -f "$data/hpl/matrix_size_reality.csv" ]; then
    tail -n +3 "$data/hpl/dahu_dgemm_polynomial_2019.csv" | tr , ' ' | sed 's/$/ 0/' | model '"s"' 9990 '1 m*n*k m*n m*k n*k' >dahu.json
    awk -F, 'BEGIN { print "name,N" } $5 == "2019-03" { time[$1] += $3; runs[$1]++ }
        END { for (n in time) print time[n] / runs[n] "," n }' "$data/hpl/matrix_size_reality.csv" >sizes.csv
    errors() { # errors SETTINGS...: in per cent, and without sign, the mean over the sizes
        "$ASSAY" predict hpl dahu.json -s sizes.csv --set NB=128 --set P=32 --set Q=32 --set latency=1us --set bandwidth=10GB/s \
            "$@" -o errors.csv >/dev/null
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { error = $at["time"] / $1 - 1; sum += error < 0 ? -error : error }
            END { printf "%.1f\n", 100 * sum / (NR - 1) }' errors.csv
    }
    is "dahu: the mean of the cpus" "$(errors --set speed=mean --set panels=asymptotic)" 28.5
    is "dahu: the slowest of them" "$(errors --set panels=asymptotic)" 14.8
    is "dahu: recursive panels" "$(errors)" 13.0
    is "dahu: waiting for the slowest call" "$(errors --set speed=waiting)" 7.8
else
    skip "HPL on dahu" "$data/hpl is absent"
fi
finish
