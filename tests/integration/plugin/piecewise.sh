#!/bin/bash
# assay fit piecewise by the command line: breaks that are found, and that are given.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
# Where the segments of the group with LABELS begin, but the first.
breaks() { grep -F "$2" "$1" | grep -oE '"from": [^,]*' | cut -d' ' -f2 | paste -sd' '; }

# y = 1 + x up to 49, 100 + 3 x from 50 on, as good as without noise; group recv has one size alone.
{
    echo "operation,size,duration"
    for i in $(seq 1 100); do
        y=$((i < 50 ? 1 + i : 100 + 3 * i))
        echo "send,$i,$y.0$((i * i % 7))"
        echo "send,$i,$y.0$((i * i % 5))"
    done
    echo "recv,8,1"; echo "recv,8,2"
} >calls.csv

check "segmented lines" "$ASSAY" fit piecewise calls.csv --response duration --by operation --set criterion=bic -o model.json
report $(contains model.json '"kind": "piecewise"' && contains model.json '"over": "size"'; echo $?) "the model is of this kind, over size"
is "the break is found" "$(breaks model.json '"operation": "send"')" 50
report $(contains model.json '"break_low": 49, "break_high": 50'; echo $?) "and its interval"
report $(contains model.json 'size is 8 in all rows'; echo $?) "a group with one size is skipped with the reason"
check "the model" "$ASSAY" model check model.json
check "a row" "$ASSAY" model eval model.json operation=send size=80
report $(contains .out '340\.'; echo $?) "is evaluated by its segment"
check "breaks that are given" "$ASSAY" fit piecewise calls.csv --response duration --set breaks=33.5 --set names=eager,rendezvous --by operation -o given.json
is "hold where the user says" "$(breaks given.json '"operation": "send"')" 33.5
report $(contains given.json '"name": "rendezvous"'; echo $?) "segments have their names"
refuse "breaks out of order" 2 "the break 40 follows the break 50" \
    "$ASSAY" fit piecewise calls.csv --response duration --set breaks=50,40 --by operation
check "shuffled rows" bash -c '{ head -1 calls.csv; tail -n +2 calls.csv | sort -t, -k3; } >sorted.csv'
check "... give the same model" "$ASSAY" fit piecewise sorted.csv --response duration --by operation --set criterion=bic --folds 0 -o sorted.json
"$ASSAY" fit piecewise calls.csv --response duration --by operation --set criterion=bic --folds 0 -o model.json >/dev/null
estimates() { grep -oE '"(estimate|standard_error|rss|bic)": [^,}]*' "$1"; }
is "to the last digit" "$(estimates sorted.json)" "$(estimates model.json)"
# ---- Many groups, whose breaks are what tells them apart
awk -F, 'NR == 1 {print "node," $0} NR > 1 && $1 == "send" {for (i = 1; i <= 4; i++) print "n" i "," $0}' calls.csv >nodes.csv
check "a group for each of four nodes" "$ASSAY" fit piecewise nodes.csv --response duration --by node --set criterion=bic
report $(contains .out '^group +rows +error \(%\) +parts +breaks$' && contains .out '^n4 +200 +[0-9.]+ +2 +50$'; echo $?) "a line a group with its breaks"
check "--brief" "$ASSAY" fit piecewise calls.csv --response duration --by operation --set criterion=bic --brief
report $(! grep -q '│\||' .out; echo $?) "has no chart"
finish
