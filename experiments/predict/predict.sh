#!/bin/sh
# A scenario. Factors and options are in the environment; what is printed is a line a number: its name, its value, its unit.
# The prediction is sealed in prediction.zip, which the run keeps.
set -eu
folder=$(mktemp -d ./prediction.XXXXXX)
trap 'rm -rf "$folder"' EXIT

set -- predict "$method" --draws "$draws"
if [ -d "$models" ]; then
    for model in "$models"/*.json; do
        role=${model##*/}
        set -- "$@" "${role%.json}=$model"
    done
else
    set -- "$@" "$models"
fi
for setting in "N=$N" "NB=$NB" "P=$P" "Q=$Q" "latency=$latency" "bandwidth=$bandwidth"; do
    [ "${setting#*=}" = 0 ] || set -- "$@" --set "$setting"
done
set -f
[ "$settings" = - ] || for setting in $settings; do set -- "$@" --set "$setting"; done

rm -f prediction.zip
"$assay" "$@" --archive prediction.zip -o "$folder/out.csv" >"$folder/shown"
grep '^warning: ' "$folder/shown" || :
echo "warnings $(grep -c '^warning: ' "$folder/shown")"

# The unit of a column is in the data package beside the table: its fields are in the columns' order.
awk -F, '
    FNR == NR {
        while (match($0, /"name": *"[^"]*"|"unit": *"[^"]*"/)) {
            value = substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
            key = value ~ /^"name"/ ? "name" : "unit"
            gsub(/^"[a-z]*": *"|"$/, "", value)
            if (key == "name") name = value; else unit[name] = value
        }
        next
    }
    FNR == 1 { for (i = 1; i <= NF; i++) column[i] = $i; next }
    FNR == 2 {
        for (i = 1; i <= NF; i++)
            if ($i ~ /^-?[0-9][0-9.e+-]*$/) printf "%s %s %s\n", column[i], $i, column[i] in unit ? unit[column[i]] : "1"
            else if ($i ~ /^"/) exit
    }' "$folder/out.csv.datapackage.json" "$folder/out.csv"
