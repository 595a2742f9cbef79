#!/bin/sh
# Setup: whether assay and its method are here, and a model of every role. Options are in the environment.
set -euf
fail() {
    echo "predict: $*" >&2
    exit 1
}
command -v "$assay" >/dev/null ||
    fail "there is no program '$assay' on this node, expected assay there (--set assay=PATH, of a file system that the nodes see)"
"$assay" predict "$method" --parameters >parameters.txt || fail "'$assay' cannot predict '$method'"
"$assay" --version
[ -d "$models" ] || exit 0

# Measurements are fitted here, once; a model of that name stands for them.
[ "$fit" != - ] || fit=
set +f
for data in "$models"/*.zip "$models"/*.csv; do
    model=${data%.*}.json
    set -f
    # shellcheck disable=SC2086 # words, none of which a shell interprets
    { [ -e "$data" ] && [ ! -e "$model" ]; } && { "$assay" fit $fit "$data" -o "$model" || fail "'$data' could not be fitted"; }
    set +f
done
for model in "$models"/*.json; do
    [ -e "$model" ] || fail "'$models' has no models, expected files ROLE.json, such as dgemm.json"
    sha256sum "$model"
done
