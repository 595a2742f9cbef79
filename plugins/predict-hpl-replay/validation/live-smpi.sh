#!/bin/bash
# live-smpi.sh DATA HPL: HPL's own code on SimGrid's SMPI (the experiment hpl-smpi) and replayed, on the same models of dahu, without
# noise; simulated times, errors and costs side by side. DATA is the folder of the measured data, HPL the path of HPL's source in netlib's
# layout. $ASSAY is the program, by default the one in PATH. SimGrid (smpicc, smpirun) is needed. Some 10 minutes. SWAPS=1 leaves out binary exchange.
#
# With smpi/grow-injected-times SMPI makes each probe in vain longer than the one before: beside it is the replay with probing=smpi.
# Without, probes cost what they cost: beside it is the replay with probing=immediate.
set -eu
here=$(cd "$(dirname "$0")" && pwd) data=$(cd "$1" && pwd) hpl=$(realpath "$2") assay=${ASSAY:-assay}
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
bash "$here/dahu-models.sh" "$data/hpl" "$models" mean.csv
cd "$models"
kernels=()
for kernel in dtrsm dgemv dscal idamax daxpy dtrsv dlacpy dlatcpy; do kernels+=("$kernel=$kernel.json"); done
"$assay" export kernels dgemm=dgemm.json "${kernels[@]}" -o kernels.h >log 2>&1
"$assay" export simgrid network.json --set hosts=64 --set cores=32 --set loopback-latency=0.1us --set loopback-bandwidth=12.5GB/s -o platform.xml >>log 2>&1
cat >points.csv <<'CSV'
N,NB,ranks,P,Q,nodes,BCAST,DEPTH,SWAP
2000,128,16,4,4,16,1ring,0,binary-exchange
2000,128,16,4,4,16,1ring,1,binary-exchange
2000,128,16,1,16,16,2ring,1,binary-exchange
2000,128,16,16,1,16,1ring,0,binary-exchange
5000,128,64,8,8,2,long,0,binary-exchange
5000,128,64,8,8,2,2ring,1,binary-exchange
5000,128,64,8,8,64,2ring,1,binary-exchange
2000,128,16,4,4,16,1ring,0,spread-roll
2000,128,16,4,4,16,1ringM,1,spread-roll
2000,128,16,4,4,2,2ringM,1,mix
2000,128,12,3,4,12,longM,0,spread-roll
2000,128,16,16,1,16,1ring,0,spread-roll
5000,128,64,8,8,2,long,1,spread-roll
5000,128,64,8,8,2,2ring,0,mix
5000,128,64,8,8,64,2ring,1,spread-roll
CSV
[ -z "${SWAPS:-}" ] || sed -i '/,binary-exchange$/d' points.csv
awk -F, -v OFS=, -v platform="$models/platform.xml" '
    NR == 1 { print $0, "RFACT,PFACT,NBMIN,grow_injected_times,platform"; next }
    { for (grow = 0; grow < 2; grow++) print $0, "right,crout,4", grow ? "yes" : "no", platform }' points.csv >rows.csv
printf 'experiment: hpl-smpi\ntestbed: local\nprobes: none\ndesign: rows.csv\noptions: {hpl: "%s", kernels: "%s"}\n' "$hpl" "$models/kernels.h" >smpi.yaml
archive=$("$assay" run smpi.yaml -q -o runs)
"$assay" archive cat "$archive" results/results.csv >results.csv

# simulated NAME N P Q NODES BCAST DEPTH SWAP GROW: of SMPI
simulated() {
    awk -F, -v name="$1" -v key="$2,$3,$4,$5,$6,$7,$8,$9" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["N"] "," $at["P"] "," $at["Q"] "," $at["nodes"] "," $at["BCAST"] "," $at["DEPTH"] "," $at["SWAP"] "," $at["grow_injected_times"] == key { print $at[name]; exit }' results.csv
}
printf '%6s %7s %5s %6s %2s %15s %10s %10s %8s %10s %10s %8s %9s %9s\n' N grid nodes bcast d swap "SMPI, grow" replayed error "SMPI, not" replayed error "SMPI took" replay
while IFS=, read -r n nb ranks p q nodes bcast depth swap; do
    line=$(printf '%6d %7s %5d %6s %2d %15s' "$n" "${p}x$q" "$nodes" "$bcast" "$depth" "$swap")
    for grow in yes no; do
        probing=$([ $grow = yes ] && echo smpi || echo immediate) took=$(simulated wall "$n" "$p" "$q" "$nodes" "$bcast" "$depth" "$swap" $grow)
        start=$(date +%s%N)
        "$assay" predict hpl-replay dgemm=dgemm.json network=network.json "${kernels[@]}" --set N="$n" --set NB="$nb" --set P="$p" --set Q="$q" \
            --set BCAST="$bcast" --set DEPTH="$depth" --set SWAP="$swap" --set ranks-per-node=$((ranks / nodes)) --set noise=no --set probing=$probing --set whole-microseconds=no -o out.csv >>log 2>&1
        end=$(date +%s%N)
        line+=$(awk -F, -v s="$(simulated time "$n" "$p" "$q" "$nodes" "$bcast" "$depth" "$swap" $grow)" '
            NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time") c = i }
            NR == 2 { printf " %8.2f ms %7.2f ms %+6.1f %%", 1e3 * s, 1e3 * $c, 100 * ($c / s - 1) }' out.csv)
    done
    awk -v line="$line" -v took="$took" -v ns=$((end - start)) 'BEGIN { printf "%s %7.2f s %7.2f s\n", line, took, ns / 1e9 }'
done < <(tail -n +2 points.csv)
