#!/bin/bash
# What -o does to what already has the name: files are replaced whole, links followed, and what is no file is written
# into; an input is never overwritten. Devices are copies in the scratch folder, so that a mistake destroys nothing.
# shellcheck disable=SC2046,SC2016 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
awk 'BEGIN {print "m,n,k,duration"; for (i = 1; i < 40; i++) {m = i * 7 % 23 + 1; n = i * 5 % 19 + 1; k = i * 3 % 17 + 1
     print m "," n "," k "," 1 + 2 * m * n * k + i % 3}}' >calls.csv
head=$(head -1 calls.csv)
fit=("$ASSAY" fit calls.csv --terms '1+m*n*k')
check "a model" "${fit[@]}" -o model.json
sed '/"created"/d' model.json >expected
same() { sed '/"created"/d' "$1" | cmp -s - expected; }

mkfifo fifo
timeout 20 cat fifo >through & reader=$!
check "a FIFO takes the model" timeout 20 "${fit[@]}" -o fifo
wait "$reader"
report $([ -p fifo ] && same through; echo $?) "it stays a FIFO, and its reader got all"

mkdir elsewhere; echo old >elsewhere/real; ln -s elsewhere/real link
check "a link" "${fit[@]}" -o link
report $([ -L link ] && same elsewhere/real; echo $?) "what it leads to is replaced, the link stays"
ln -s made dangling
check "a link to nothing" "${fit[@]}" -o dangling
report $([ -L dangling ] && same made; echo $?) "it makes what the link names"

if mknod null c 1 3 2>/dev/null && (: >null) 2>/dev/null; then
    mknod full c 1 7
    check "a device takes the model" "${fit[@]}" -o null
    report $([ -c null ]; echo $?) "it stays a device"
    refuse "a device that is full" 1 "cannot write 'full': No space left on device" "${fit[@]}" -o full
    refuse "a design to a full device" 1 "cannot write 'full': No space left on device" \
        "$ASSAY" design factorial a=1..9 -o full
    report $([ -c full ]; echo $?) "it stays a device too"
else skip "devices stay devices" "no right to make any here"; fi
check "standard output by its name" sh -c '"$@" --json -o /dev/null >/dev/null && "$@" -o /dev/stdout | grep -q assay_model' \
    - "${fit[@]}"
refuse "a folder" 2 "cannot write 'elsewhere': Is a directory" "${fit[@]}" -o elsewhere
report $([ "$(find . -name '*.part' | wc -l)" -eq 0 ]; echo $?) "nothing is left beside any of them"

# The command's own input.
refuse "the table" 2 "the output 'calls.csv' is also an input" "${fit[@]}" -o calls.csv
ln -s calls.csv alias.csv; ln calls.csv hard.csv
refuse "the table by a link" 2 "the output 'alias.csv' is also an input" "${fit[@]}" -o alias.csv
refuse "the table by another name" 2 "the output './hard.csv' is also an input" "${fit[@]}" -o ./hard.csv
refuse "the table on standard input" 2 "the output 'calls.csv' is also an input" \
    sh -c '"$1" fit - --terms 1+m -o calls.csv <calls.csv' - "$ASSAY"
printf 'N,NB,P,Q\n100,10,1,1\n' >scenarios.csv
refuse "the scenarios" 2 "the output 'scenarios.csv' is also an input" \
    "$ASSAY" predict hpl model.json -s scenarios.csv -o scenarios.csv
refuse "the model" 2 "the output 'model.json' is also an input" \
    "$ASSAY" predict hpl model.json -s scenarios.csv -o model.json
"$ASSAY" design factorial a=1..9 -o design.csv 2>/dev/null
refuse "the design" 2 "the output 'design.csv' is also an input" "$ASSAY" design --from design.csv -o design.csv
report $([ "$(head -1 calls.csv)" = "$head" ] && same model.json && [ "$(wc -l <design.csv)" -eq 10 ]; echo $?) \
    "all of them are as they were"

# A reader that has seen enough gets no sentence, whatever prints.
gone() { # gone NAME COMMAND...
    check "$1: a reader that went away" bash -c '
        rm -f pipe; mkfifo pipe; exec 3<>pipe 4>pipe; exec 3<&-
        "$@" >&4 2>chatter; [ $? -eq 1 ] && ! grep -vE "^seed|^assay: note:" chatter >&2' - "${@:2}"
}
gone "fit" "${fit[@]}"
gone "fit --json" "${fit[@]}" --json
gone "design" "$ASSAY" design factorial a=1..1000 b=1..100
gone "predict" "$ASSAY" predict hpl model.json -s scenarios.csv

# Given twice.
refuse "an output too many" 2 "option '--output' is given twice; expected it once" "${fit[@]}" -o a.json --output=b.json
refuse "a setting too many for predict" 2 "'N' is set twice: 'N=1' and 'N=2'; expected one of them" \
    "$ASSAY" predict hpl model.json --set N=1 --set N=2
refuse "a setting too many for run" 2 "'n' is set twice: 'n=1' and 'n=2'; expected one of them" \
    "$ASSAY" run --dry-run "$ASSAY_SOURCE/examples/quickstart.yaml" --set n=1 --set n=2
many=(); for i in $(seq 300); do many+=(--set "x$i=$i"); done
refuse "the last of many settings is not lost" 2 "'x300' is set twice: 'x300=300' and 'x300=301'" \
    "$ASSAY" run --dry-run "$ASSAY_SOURCE/examples/quickstart.yaml" "${many[@]}" --set x300=301
finish
