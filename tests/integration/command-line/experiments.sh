#!/bin/bash
# assay experiments: what is listed and shown of those that are installed, and new ones that run as they are.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
unset ASSAY_PATH

# ---- The list

folders=$(cd "$ASSAY_SOURCE/experiments" && for file in */experiment.yaml; do dirname "$file"; done | LC_ALL=C sort)
check "the list" "$ASSAY" experiments
cp .out list
is "... has every folder with an experiment, and no other" "$(sed -n 's/^  \([^ ]\{1,\}\).*/\1/p' list)" "$folders"
check "... under where they are" grep -qx "$ASSAY_BUILD/share/assay/experiments:" list
check "as JSON" "$ASSAY" experiments list --json
cp .out list.json
mkdir -p mine/experiments/dgemm mine/experiments/own
echo 'name: [' >mine/experiments/dgemm/experiment.yaml
printf '%s\n' 'name: own' 'summary: of mine' 'responses: {x: {pattern: "([0-9]+)"}}' 'run: echo 1' >mine/experiments/own/experiment.yaml
check "with ASSAY_PATH" env ASSAY_PATH="$scratch/mine" "$ASSAY" experiments
cp .out list
is "... its experiments come first" "$(grep -oE '^(/.*mine/experiments:|  (dgemm|own|hpl) )' list | tr -d ' \n')" "$scratch/mine/experiments:dgemmownhpl"
check "... one that cannot be read comes with the reason" grep -q "^  dgemm  *$scratch/mine/experiments/dgemm/experiment.yaml:2:1:$" list
is "... and stands in the place of the installed one" "$(grep -c '^  dgemm ' list)" 1

# ---- One of them

# What the file says, read by another program where there is one.
names() { awk '/^[a-z]/ { in_factors = /^factors:/ } in_factors && /^  [A-Za-z0-9_]+:/ { sub(":.*", "", $1); print $1 }' "$1"; }
if command -v jq >/dev/null; then has_jq=yes; else has_jq=; fi
for name in $folders; do
    file=$ASSAY_SOURCE/experiments/$name/experiment.yaml
    check "show $name" "$ASSAY" experiments show "$name"
    is "... has its factors" "$(sed -n '/^Factors:/,/^$/s/^  \([^ ]\{1,\}\).*/\1/p' .out | grep -vx require)" "$(names "$file")"
    is "... fits 80 columns" "$(awk 'NR > 2 && length($0) > 80' .out)" ""
    check "... as JSON" "$ASSAY" experiments show "$name" --json
    if [ $has_jq ]; then is "... has its factors" "$(jq -r '.factors | keys_unsorted[]' .out)" "$(names "$file")"
    else skip "... has its factors" "no jq"; fi
done
if [ $has_jq ]; then is "the list as JSON has them all" "$(jq -r '.[].name' list.json)" "$folders"
else skip "the list as JSON has them all" "no jq"; fi
"$ASSAY" experiments show hpl >hpl
is "bounds and default" "$(sed -n '/^  NB /,/default/p' hpl | tr -s '\n ' ' ')" " NB width of a block of columns; a whole number from 1 to 8192; default: 192 "
check "... with the unit" grep -q 'in byte; default: 1000000000 byte' <("$ASSAY" experiments show mpi-point-to-point | tr -s '\n ' ' ')
check "the option that says the placement" grep -q '^  placement  *{placement}, by default job, one unit at a time' hpl
check "input files, by name" grep -qE '^  files +\[HPL.dat\]$' hpl

# ---- New ones

complete() { # complete FOLDER UNITS: it runs, and its results are right
    check "... which runs" "$ASSAY" run "$1/campaign.yaml" -o "$1-runs"
    local archive; archive=$(tail -n 1 .out)
    check "... its archive is whole" "$ASSAY" archive verify "$archive"
    "$ASSAY" archive cat "$archive" results/results.csv >results.csv
    is "... all units are done, and their sums right" \
        "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 && $at["error"] == "0" && $at["time"] > 0 { n++ } END { print n }' results.csv)" "$2"
    check "... a model is fitted to it" "$ASSAY" fit "$archive"
}
check "a new one" "$ASSAY" experiments new my-own
is "... has its name" "$("$ASSAY" experiments show ./my-own | head -n 1)" "my-own: time to add up the numbers of an array"
is "... and nowhere that of the template" "$(grep -rl new-experiment my-own)" ""
complete my-own 10
if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
    check "one of MPI" "$ASSAY" experiments new ranks --mpi -o "a folder"
    complete "a folder" 6
else skip "one of MPI" "no mpicc and mpirun (libopenmpi-dev, openmpi-bin)"; fi

touch taken
refuse "a name that is there" 2 "^assay: 'my-own' is there already, expected the name of a new folder$" "$ASSAY" experiments new my-own
refuse "... as a file" 2 "^assay: 'taken' is there already" "$ASSAY" experiments new my-own -o taken
refuse "a folder in the place of a campaign" 2 "'my-own' is a folder; expected a campaign, such as my-own/campaign.yaml" "$ASSAY" run my-own
refuse "a name that cannot be" 2 "^assay: 'My own' cannot name an experiment, expected up to 64 lower-case" "$ASSAY" experiments new 'My own'
refuse "... or is a path" 2 "^assay: '\.\./${scratch##*/}-x' cannot name an experiment" "$ASSAY" experiments new "../${scratch##*/}-x"
refuse "a folder in a folder that is not there" 2 "^assay: cannot make the folder 'no/x': No such file" "$ASSAY" experiments new x -o no/x
is "... nothing was made" "$(ls -d 'My own' ../"${scratch##*/}-x" no 2>"$scratch/err")" ""
refuse "show of one that is not there" 2 "^assay: there is no experiment 'hpll'; did you mean 'hpl'\?$" "$ASSAY" experiments show hpll
refuse "... of a folder that is none" 2 "there is no 'experiment.yaml' in" "$ASSAY" experiments show ./mine
refuse "... of the templates" 2 "^assay: there is no experiment 'templates'" "$ASSAY" experiments show templates
refuse "show of nothing" 2 "'assay experiments show' has 0 operands; expected the name of an experiment" "$ASSAY" experiments show
refuse "another action" 2 "^assay: 'assay experiments' has no action 'make'; expected list, show or new$" "$ASSAY" experiments make x
refuse "an option of another action" 2 "'assay experiments list' has no option '--mpi'" "$ASSAY" experiments --mpi
finish
