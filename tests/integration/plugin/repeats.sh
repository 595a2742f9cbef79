#!/bin/bash
# No measurement counts twice: a file that is given twice, the parts of one run, copies that went on apart.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# y = 3 + 2x or one more, in a run that fails behind the row that `last` says.
{ echo x; seq 1 12; } >rows.csv
cat >line.yaml <<E2
experiment:
  name: line
  factors: {x: {type: integer}}
  run: [sh, -c, 'test \$x -le \$(cat $scratch/last) && echo y \$((3 + 2 * x + x % 2))']
  responses: {y: {pattern: '^y ([0-9]+)'}}
design: {file: rows.csv, order: as-written}
stop-after-failures: 1
probes: none
E2
run() { "$ASSAY" "$@" -q 2>err >archive; }
echo 4 >last
run run line.yaml -o runs
name=$(basename runs/*.zip .zip)
echo 8 >last
run resume "runs/$name"
cp -r runs copy
echo 12 >last
run resume "runs/$name"
run resume "copy/$name"
first=runs/$name.zip second=runs/$name-2.zip third=runs/$name-3.zip other=copy/$name-3.zip
check "a run of three parts, of which the last was done in two places" test -f "$third" -a -f "$other"

fit() { "$ASSAY" fit "$@" --terms 1+x --by none --folds 0 --brief >out 2>err || { sed 's/^/# /' err; return 1; }; }
fits() { # fits ROWS INPUT...: ROWS are used, and all inputs but these of LEFT_OUT are named as left out
    local rows=$1; shift
    fit "$@" && grep -q "^fitted to $rows rows " out && [ "$(grep -c 'is left out' out)" -eq ${#left_out[@]} ] || { cat out err; return 1; }
    for file in "${left_out[@]}"; do grep -qF "note: '$file' is left out: " out || return 1; done
}
left_out=("$first" "$second")
check "the latest part is used, and the others are named" fits 12 "$first" "$third" "$second"
left_out=("$first")
check "... whichever it is" fits 8 "$second" "$first"
fits_piped() { fits 15 "$first" - "$third" --response y <calls.csv; }
left_out=("$third" "$second")
check "... and the run's folder goes on from its archives" fits 12 "$second" "$third" "runs/$name"
left_out=("$third" "$second")
check "... wherever it stands" fits 12 "runs/$name" "$third" "$second"
left_out=("$third" "./$third")
check "the same archive is used once" fits 12 "$third" "$third" "./$third"
cp "$third" renamed.zip
left_out=(renamed.zip "$second")
check "... also under another name" fits 12 "$second" "$third" renamed.zip
printf 'x,y\n1,5\n2,7\n3,10\n' >calls.csv
ln -s calls.csv linked.csv
left_out=(linked.csv "./calls.csv")
check "the same CSV is used once" fits 15 calls.csv linked.csv ./calls.csv "$third" --response y
left_out=("$first")
check "... and standard input stays an input" fits_piped

# The same rows in other files. What has them all is used; of two that have the same, the archive or the first.
"$ASSAY" archive cat "$third" results/results.csv >extracted.csv
head -6 extracted.csv >begin.csv
(head -1 extracted.csv; tail -5 extracted.csv) >end.csv
sed 's/$/\r/' extracted.csv >windows.csv
(head -1 extracted.csv; tail -n +2 extracted.csv | sort -r) >sorted.csv
awk 'NR % 2' extracted.csv >chosen.csv
gzip <extracted.csv >extracted.csv.gz
cp calls.csv copy.csv
printf 'y,x\n5.0,1\n7,2\n1e1,3\n' >swapped.csv
printf 'x,y\n1,5\n2,7\n3,11\n' >others.csv
left_out=(extracted.csv)
fit_rows() { local rows=$1; shift; fits "$rows" "$@" --response y; }
check "an archive and what was extracted from it count once" fit_rows 12 extracted.csv "$third"
check "... its run's folder, too" fit_rows 12 "runs/$name" extracted.csv
left_out=(windows.csv sorted.csv extracted.csv.gz begin.csv end.csv chosen.csv)
check "... however they are stored, and a part of them" fit_rows 12 "$third" "${left_out[@]}"
left_out=(copy.csv swapped.csv)
check "a copy of a CSV counts once, with other columns first and other digits as well" fit_rows 3 calls.csv copy.csv swapped.csv
left_out=()
check "a CSV with another value is another" fit_rows 6 calls.csv others.csv
check "... and a note says how many rows both have" grep -qF "note: 'others.csv' has 2 of its 3 rows in common with 'calls.csv', and each of these rows counts twice; if" out
left_out=(calls.csv)
fits_copies() { fit_rows 3 - calls.csv <copy.csv && cat copy.csv | fit_rows 3 - calls.csv; }
check "standard input and a file count once" fits_copies
fits_processes() { fit calls.csv <(cat copy.csv) <(gzip <copy.csv) --response y &&
    grep -q "^fitted to 3 rows " out && [ "$(grep -c "note: '/dev/fd/[0-9]*' is left out: 'calls.csv' has all of its 3 rows" out)" = 2 ]; }
check "what processes write, too" fits_processes
for command in "report" "fit alternatives linear --sizes x -y y" "model check line.json"; do
    [ "${command% line.json}" = "$command" ] || "$ASSAY" fit "$third" --terms 1+x --by none -o line.json >/dev/null
    data=; [ "${command#model}" = "$command" ] || data=--data
    check "'assay ${command%% -*}' leaves the same rows out" \
        sh -c "'$ASSAY' $command $data '$third' $data extracted.csv >out 2>&1; cat out; grep -qF \"'extracted.csv' is left out: '$third' has all of its 12 rows\" out"
done

refuse "a run that was resumed in two places is refused" 2 \
    "this archive and '.*' belong to the same run \([0-9a-f-]+\), but neither continues the other" \
    "$ASSAY" fit "$third" "$other" --terms 1+x
refuse "... its folder, too" 2 "neither continues the other" "$ASSAY" fit "$third" "copy/$name" --terms 1+x
refuse "... beside an earlier part, too" 2 "neither continues the other" "$ASSAY" fit "$first" "$other" "$third"

# The other commands that read tables.
"$ASSAY" fit "$third" --terms 1+x --by none -o line.json >/dev/null
"$ASSAY" fit calls.csv -y y --terms 1+x -o calls.json >/dev/null
left_out=("$first")
for command in "fit alternatives linear --sizes x" "compare line.json calls.json" "model check line.json"; do
    data=; [ "${command#fit a}" != "$command" ] || data=--data
    check "'assay $command' leaves earlier parts out" \
        sh -c "'$ASSAY' $command $data '$first' $data '$third' >out 2>&1; cat out; grep -qF \"note: '$first' is left out\" out"
    refuse "... and refuses forks" 2 "neither continues the other" "$ASSAY" $command $data "$third" $data "$other"
done
finish
