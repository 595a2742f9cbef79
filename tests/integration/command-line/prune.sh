#!/bin/bash
# assay list --prune: what is removed, and above all what is not.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/integration/beat.sh"
runs=$scratch/runs

seal() { # seal NAME N...: a run of these units; its folder in $folder
    campaign "$1" local "${@:2}"
    "$ASSAY" run "$scratch/$1.yaml" -q -o "$runs" >/dev/null 2>&1 </dev/null
    folder=$(echo "$runs/$1"-*.zip) folder=${folder%.zip}
}
seal good 1 2; good=$folder
seal partial 1 9; partial=$folder
seal empty 9; empty=$folder
seal differs 1; differs=$folder
printf '\1' | dd of="$differs.zip" bs=1 seek=500 conv=notrunc 2>/dev/null
seal missing 1; missing=$folder; rm "$missing.zip"
touch "$scratch/hold"
campaign long local 3
"$ASSAY" run "$scratch/long.yaml" -q -o "$runs" >/dev/null 2>&1 </dev/null &
pid=$!
eventually sh -c "grep -qs '\"event\":\"block-started\"' '$runs'/long-*/journal.jsonl"
long=$(echo "$runs"/long-*)
before=$(ls "$runs")

check "without a terminal it is shown" "$ASSAY" list "$runs" --prune
report $(contains "$scratch/.err" '^nothing was removed; --yes removes 2 runs$'; echo $?) "... and nothing is removed"
says() { output "^$1 +$2$"; report $? "... $3"; }
says "$good" "is removed +complete, and its archive verifies" "a complete run goes"
says "$empty" "is removed +nothing was measured" "one without measurements, too"
says "$partial" "stays +it is not complete; 'assay resume' continues it" "one that can be resumed stays"
says "$differs" "stays +its archive is missing, or is not as it was sealed" "one whose archive differs"
says "$missing" "stays +its archive is missing, or is not as it was sealed" "or is missing"
says "$long" "stays +it is under way" "one that is running"
is "... all are there" "$(ls "$runs")" "$before"
refuse "--yes alone" 2 "--yes with --prune" "$ASSAY" list "$runs" --yes
check "with --yes" "$ASSAY" list "$runs" --prune --yes
is "... two folders and the empty archive are gone" \
    "$(diff <(echo "$before") <(ls "$runs") | sed -n 's/^< //p' | sort)" "$(printf '%s\n' "${empty##*/}" "${empty##*/}.zip" "${good##*/}" | sort)"
check "... the archive of the complete one is whole" "$ASSAY" archive verify "$good.zip"
rm "$scratch/hold"
wait $pid
is "the run that was running ends well" $? 0
check "a second time" "$ASSAY" list "$runs" --prune --yes
is "... it is removed as well" "$(ls -d "$runs"/long-*)" "$long.zip"
finish
