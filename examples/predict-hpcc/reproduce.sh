#!/bin/sh
# The method of W. Pfeiffer, N. J. Wright (IPDPS 2008) on a simulated fleet: models of six applications from ten machines, their
# predictions for three more, and for each of the ten from the nine others.
#
#   sh reproduce.sh [FOLDER]     writes tables and models into FOLDER; default: the current one
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-.} assay=${ASSAY:-assay}
mkdir -p "$out" && cd "$out"
awk -v seed="${SEED:-1}" -v noise="${NOISE:-0.1}" -v first=1 -v last=13 -f "$here/fleet.awk" >fleet.csv
kinds='StarDGEMM_Gflops|SingleDGEMM_Gflops|StarFFT_Gflops,StarSTREAM_Triad|StarSTREAM_Copy,RandomlyOrderedRingBandwidth|AvgPingPongBandwidth,RandomlyOrderedRingLatency|AvgPingPongLatency'
applications="" hpl="" fft=""
for kernel in StarDGEMM_Gflops SingleDGEMM_Gflops StarFFT_Gflops; do
    applications="$applications + ranks^-1*$kernel^-1" hpl="$hpl + N^3*ranks^-1*$kernel^-1" fft="$fft + N*log2(N)*ranks^-1*$kernel^-1"
done
for kernel in StarSTREAM_Triad StarSTREAM_Copy; do
    applications="$applications + ranks^-1*$kernel^-1" hpl="$hpl + N^2*ranks^-1*$kernel^-1" fft="$fft + N*ranks^-1*$kernel^-1"
done
for kernel in RandomlyOrderedRingBandwidth AvgPingPongBandwidth; do
    applications="$applications + ranks^-1*$kernel^-1" hpl="$hpl + N^2*log2(ranks)*ranks^-1*$kernel^-1" fft="$fft + N*ranks^-1*$kernel^-1"
done
for kernel in RandomlyOrderedRingLatency AvgPingPongLatency; do
    applications="$applications + $kernel" hpl="$hpl + N*log2(ranks)*$kernel" fft="$fft + ranks*$kernel"
done

# fit APPLICATION TERMS MACHINES MODEL: every row counts by its relative error, and no term is below 0.
fit() {
    "$assay" fit linear fleet.csv --response time --terms "$2" --by application --where "application == '$1' and $3" --weights '1/time^2' \
        --set select=elimination --set one-of="$kinds" --set outliers=3 --set bounds=nonnegative --folds 0 -o "$4" >fit.log 2>&1 ||
        { cat fit.log >&2; exit 1; }
}
# errors APPLICATION MODEL MACHINE: "APPLICATION ERROR" for each row of it, relative.
errors() {
    awk -F, -v OFS=, -v a="$1" -v m="$3" 'NR == 1 || ($2 == a && $1 == m) { $1 = $1 == "machine" ? "name" : $NF; $2 = ""; sub(/,,/, ","); sub(/,[^,]*$/, ""); print }' fleet.csv >scenarios.csv
    "$assay" predict hpcc "$2" --scenario scenarios.csv -o predicted.csv >/dev/null 2>predict.log || { cat predict.log >&2; exit 1; }
    awk -F, -v a="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print a, $at["time"] / $1 - 1 }' predicted.csv
}
: >new.txt; : >left-out.txt
for application in application-1 application-2 application-3 application-4 HPL G-FFT; do
    case $application in HPL) terms=$hpl ;; G-FFT) terms=$fft ;; *) terms=$applications ;; esac
    terms=${terms# + }
    fit $application "$terms" "machine != 'machine-11' and machine != 'machine-12' and machine != 'machine-13'" $application.json
    for m in 11 12 13; do errors $application $application.json machine-$m >>new.txt; done
    for m in 1 2 3 4 5 6 7 8 9 10; do
        fit $application "$terms" "machine != 'machine-$m' and machine != 'machine-11' and machine != 'machine-12' and machine != 'machine-13'" without.json
        errors $application without.json machine-$m >>left-out.txt
    done
done
echo "relative root mean square error, %:"
awk '{ sum[FILENAME, $1] += $2 ^ 2; mean[FILENAME, $1] += $2; n[FILENAME, $1]++; if (!($1 in seen)) { seen[$1] = 1; order[++count] = $1 } }
    END { printf "%-15s %19s %6s %26s\n", "", "three new machines", "(bias)", "each of ten from nine"
        for (i = 1; i <= count; i++) { a = order[i]; printf "%-15s %19.1f %6.1f %26.1f\n", a, 100 * sqrt(sum["new.txt", a] / n["new.txt", a]),
            100 * mean["new.txt", a] / n["new.txt", a], 100 * sqrt(sum["left-out.txt", a] / n["left-out.txt", a]) } }' new.txt left-out.txt
