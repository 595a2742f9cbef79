#!/bin/bash
# The main job, end to end, on the machine at hand: installs what is missing (Debian), builds assay, calibrates dgemm on
# every core, checks the sealed archive, fits a model and predicts HPL with it; where HPL is installed it is run, too.
# Takes a few minutes.
#
#   examples/quickstart.sh [--small] [--assay PROGRAM] [FOLDER]
#     --small          fewer and smaller matrices: seconds instead of minutes, and a model that is not worth much
#     --assay PROGRAM  with an assay that is built already: nothing is installed or built
#     FOLDER           receives the run; default: runs/quickstart
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
small=no assay='' folder=runs/quickstart
while [ $# -gt 0 ]; do
    case $1 in
    --small) small=yes ;;
    --assay) assay=$(realpath -- "${2:?--assay needs a program}"); shift ;;
    --help | -h) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit ;;
    -*) echo "quickstart: there is no option '$1'; see --help" >&2; exit 2 ;;
    *) folder=$1 ;;
    esac
    shift
done
folder=$(realpath -m -- "$folder")
cd "$root"

step() { printf '\n== %s\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }
count_flagged() { # count_flagged ARCHIVE: how many rows a gate flagged, and how many there are
    "$assay" archive cat "$1" results/results.csv | awk -F, '
        NR == 1 {for (i = 1; i <= NF; i++) if ($i == "state.flags") flags = i; next}
        flags && $flags != "" {flagged++} END {print flagged + 0, NR - 1}'
}

if [ -z "$assay" ]; then
    build=build/release
    assay=$build/bin/assay
    step "What is needed"
    examples/install-packages.sh examples/packages.txt
    echo "all packages are installed"

    step "Build"
    # The tests need more packages and time, and tests/run.sh builds its own; a build that is there keeps its settings.
    fresh=(-DASSAY_BUILD_TESTS=OFF)
    [ ! -e $build/CMakeCache.txt ] || fresh=()
    mkdir -p build
    log=build/quickstart.log
    if ! { cmake --preset release "${fresh[@]}" && cmake --build --preset release; } >"$log" 2>&1; then
        tail -40 "$log" >&2
        echo "quickstart: the build failed; all of it is in $root/$log" >&2
        exit 1
    fi
fi
show "$assay" --version

step "Calibrate: every physical core runs dgemm, in randomised order"
campaign=examples/quickstart.yaml
terms=()
if [ $small = yes ]; then
    mkdir -p "$folder"
    sed 's/max-product: .*/max-product: 1e8/; s/max-size: .*/max-size: 1500/; s/repetitions: .*/repetitions: 2/; $a\
  products: 10\
  batch: 2' $campaign >"$folder/small.yaml"
    campaign=$folder/small.yaml
    terms=(--terms 'm*n*k' --by node) # milliseconds, on a machine that is busy as well, tell no more than one rate
fi
printf '$ %s\n' "$assay run $campaign -o $folder"
archive=$("$assay" run "$campaign" -o "$folder" | tail -n 1)
[ -f "$archive" ] || { echo "quickstart: the run printed no archive: '$archive'" >&2; exit 1; }

step "Is the archive whole?"
show "$assay" archive verify "$archive"

step "Fit the model that the experiment suggests${terms[*]:+, with fewer terms}"
model=${archive%.zip}-model.json
show "$assay" fit "$archive" "${terms[@]}" -o "$model"

step "Predict HPL on this machine"
# One process a physical core, on a grid as square as it can be. The network here is memory: the two figures for it are
# round guesses, and weigh little beside the arithmetic.
cores=$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)
p=1
for ((i = 1; i * i <= cores; i++)); do
    if ((cores % i == 0)); then p=$i; fi
done
q=$((cores / p))
# The largest N whose products of matrices, (N/P) x (N/Q) x NB, are well within those of the design.
read -r n1 n2 n3 < <(awk -v p="$p" -v q="$q" -v nb=128 '
    $1 == "max-product:" {product = $2} $1 == "max-size:" {size = $2}
    END {n = sqrt(0.6 * product * p * q / nb); if (n > 0.75 * size * p) n = 0.75 * size * p
        print int(n / 2 / nb) * nb, int(3 * n / 4 / nb) * nb, int(n / nb) * nb}' "$campaign")
scenarios=${archive%.zip}-scenarios.csv
printf 'name,N,NB,P,Q,latency,bandwidth\n' >"$scenarios"
for n in $n1 $n2 $n3; do
    printf 'N = %d,%d,128,%d,%d,1e-6,10e9\n' "$n" "$n" "$p" "$q" >>"$scenarios"
done
prediction=${archive%.zip}-hpl.csv
show "$assay" predict hpl "$model" --scenario "$scenarios" -o "$prediction"

if command -v hpcc mpirun >/dev/null; then
    step "Run HPL, and compare"
    hpl=$folder/hpl.yaml
    cat >"$hpl" <<END
name: quickstart-hpl
experiment: hpl
testbed: local
options: {dgemm: "no"}
design: {generate: factorial, factors: {N: [$n1, $n2, $n3], NB: [128], ranks: [$cores], P: [$p]}}
END
    if measured=$("$assay" run "$hpl" -q -o "$folder" | tail -n 1) && [ -f "$measured" ]; then
        # Both sides by one rule, that of `assay fit`: rows that a gate flagged are left out. Where every row of one side
        # is flagged, flagged rows are used on both sides, and the comparison cannot be trusted.
        read -r flagged rows <<<"$(count_flagged "$measured")"
        read -r flagged_dgemm rows_dgemm <<<"$(count_flagged "$archive")"
        keep=no used='left out' disturbed=
        [ "$flagged_dgemm" -lt "$rows_dgemm" ] || disturbed=dgemm
        [ "$flagged" -lt "$rows" ] || disturbed=HPL
        [ -z "$disturbed" ] || keep=yes used=used
        if [ "$disturbed" = HPL ] && [ "$flagged_dgemm" -gt 0 ] && [ "$flagged_dgemm" -lt "$rows_dgemm" ]; then
            prediction=${archive%.zip}-hpl-with-flagged.csv
            echo "every row of HPL is flagged: the model is fitted again, with the flagged rows of dgemm"
            show "$assay" fit "$archive" "${terms[@]}" --with-flagged --brief -o "${model%.json}-with-flagged.json"
            show "$assay" predict hpl "${model%.json}-with-flagged.json" --scenario "$scenarios" -o "$prediction"
        fi
        "$assay" archive cat "$measured" results/results.csv | awk -F, -v keep=$keep '
            function find(name, i) { for (i = 1; i <= NF; i++) if ($i == name) return i }
            FNR == 1 {n = find("N"); t = find("time"); flags = find("state.flags"); next}
            NR == FNR {if (keep == "yes" || !flags || $flags == "") {seconds[$n] += $t; count[$n]++} else left[$n]++; next}
            FNR == 2 {printf "%8s %14s %14s %10s\n", "N", "predicted (s)", "measured (s)", "ratio"}
            $n in count {measured = seconds[$n] / count[$n]; printf "%8d %14.4g %14.4g %10.3g\n", $n, $t, measured, $t / measured; next}
            $n in left {printf "%8d %14.4g %14s %10s\n", $n, $t, "flagged", "-"}' - "$prediction"
        echo "flagged by gates: $flagged of $rows rows of HPL, $flagged_dgemm of $rows_dgemm rows of dgemm;" \
            "they are $used on both sides"
        [ $keep = no ] || echo "This comparison cannot be trusted: the machine was disturbed during every row of $disturbed." \
            "Repeat it on an idle machine."
    else
        echo "HPL did not run here; $folder has why"
    fi
fi

step "Where everything is"
cat <<END
  program      $(realpath "$assay")
  campaign     $(realpath "$campaign")
  archive      $archive
  model        $model
  scenarios    $scenarios
  prediction   $prediction

Look into the archive:    $assay archive list $archive
Predict another machine:  $assay predict --help
An experiment of yours:   $assay experiments new mine
END
