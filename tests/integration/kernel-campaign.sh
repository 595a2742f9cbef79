# A campaign of an experiment whose sources are those of experiments/kernels and its own: sourced after tap.sh.
#
#   complete NAME UNITS   runs NAME.yaml; its archive, $archive, is whole and has every source; every unit is done, in
#                         results.csv; the suggested model, NAME.json, fits without a coefficient below 0; and the
#                         default design can be planned
complete() {
    local folder=$ASSAY_SOURCE/experiments own
    check "$1: a run" "$ASSAY" run "$1.yaml" -q -o "$1-runs"
    archive=$(echo "$1-runs"/*.zip)
    check "... its archive is whole" "$ASSAY" archive verify "$archive"
    "$ASSAY" archive cat "$archive" source.tar | tar -tf - | grep '\.[ch]$' | sort >sources
    is "... with every source" "$(xargs <sources)" "$(cd "$folder/kernels" && printf '%s\n' *.[ch] | sort | xargs)"
    for own in "$folder/$1"/*.c; do
        [ ! -e "$own" ] || check "... and its own" sh -c '"$0" archive cat "$1" "experiment/${2##*/}" | cmp - "$2"' "$ASSAY" "$archive" "$own"
    done
    "$ASSAY" archive cat "$archive" results/results.csv >results.csv
    is "... every unit is done" "$(sed 1d results.csv | cut -d, -f1,2 | sort -u | wc -l)" "$2"
    check "... the model that it suggests" "$ASSAY" fit "$archive" -o "$1.json"
    is "... has no negative coefficient" "$(grep -oE '"estimates?": -[0-9.e+-]+' "$1.json")" ""
    echo "experiment: $1" >plan.yaml
    check "... and its default design can be planned" "$ASSAY" run --dry-run plan.yaml
}
