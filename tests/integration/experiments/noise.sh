#!/bin/bash
# noise and frequency: what they count, and both through the engine, with the models that they suggest.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../kernel-campaign.sh"
cd "$ASSAY_SOURCE/experiments/kernels" || exit 1
check "noise builds" cc -O2 -Wall -Wextra -Werror -I. -o "$scratch/noise" ../noise/noise.c buffer.c settings.c
check "frequency builds" cc -O3 -march=native -Wall -Wextra -Werror -I. -o "$scratch/frequency" \
    ../frequency/frequency.c buffer.c rows.c settings.c team.c -lpthread
cd "$scratch" || exit 1

# ---- Noise
check "a thousand quanta" ./noise --quanta 1000 --cycles 6400 --threshold 0 --lines 300
cp .out out
value() { grep -oE "(^| )$1 [-0-9.]+" out | awk '{ print $2 }'; }
is "quantiles are in order" "$(for q in minimum median q99 q999 maximum; do value $q; done | sort -gc 2>&1)" ""
is "with a threshold of 0, at most half of them are longer than the median" "$(awk -v n="$(value detours)" 'BEGIN { print (n <= 500) }')" 1
listed=$(grep -c '^detour' out)
is "no more are listed than wanted" "$([ "$listed" -le 300 ] && [ "$listed" -le "$(value detours)" ] && echo yes)" yes
is "detours are within the time, and in their order" \
    "$(awk -v total="$(value total)" '$1 == "detour" { if ($2 < last || $2 > total || $3 <= 0) print; last = $2 }' out)" ""
is "all of them and the median make no more than the time" \
    "$(awk -v t="$(value total)" -v m="$(value minimum)" 'BEGIN { print (1000 * m <= t * 1.000001) }')" 1
is "the share that is lost is that over the minimum" \
    "$(awk -v t="$(value total)" -v m="$(value minimum)" -v l="$(value lost)" 'BEGIN { d = l - (1 - 1000 * m / t); print (d < 1e-3 && d > -1e-3) }')" 1
is "additions are no faster than any clock" "$(awk -v f="$(value frequency)" 'BEGIN { print (f > 1e6 && f < 2e10) }')" 1
refuse "fewer quanta than have quantiles" 2 "quanta '9' is not a whole number from 10" ./noise --quanta 9
refuse "an option that is none" 2 "unknown option '--colour'; 'noise --help' lists" ./noise --colour 3

# ---- Frequency
feed() { # feed ROWS [OPTIONS]
    local rows=$1; shift
    printf "unit,cores,load,seconds\n$rows" | ./frequency "$@"
}
cpus=$(nproc)
check "one core and all cores" feed "1,1,integer,0.01\n2,$cpus,vector,0.01\n" --most-cores "$cpus"
is "... mean, slowest and fastest are in order" \
    "$(grep -v '^[#u]' .out | awk -F, '{ if ($5 <= $4 * (1 + 1e-9) && $4 <= $6 * (1 + 1e-9) && $5 > 0 && $6 < 2e10) n++ } END { print n }')" 2
refuse "more cores than CPUs" 2 "$((cpus + 1)) threads are set; expected at most $cpus" feed "" --most-cores $((cpus + 1))
refuse "more cores than were started" 2 "line 2: a row has 2 cores; expected at most --most-cores 1" feed "1,2,integer,1\n" --most-cores 1

# ---- Through the engine
printf '%s\n' 'experiment: noise' 'probes: none' 'options: {threshold: 0}' \
    'design: {factors: {cycles: [6400, 12800], quanta: [200]}, repetitions: 3}' >noise.yaml
complete noise 6
check "detours are a table" "$ASSAY" archive cat "$archive" results/tables/detours.csv
is "... with all that were counted" "$(sed 1d .out | wc -l)" \
    "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR > 1 { n += $at["detours"] } END { print n + 0 }' results.csv)"
printf '%s\n' 'experiment: frequency' 'probes: none' \
    'design: {factors: {cores: [1, 100%], load: [integer, vector], seconds: [0.02]}, repetitions: 2}' >frequency.yaml
complete frequency 8
sed -n '/^    experiment: frequency/,/^$/s/^    //p' "$ASSAY_SOURCE/experiments/frequency/README.md" >controls.yaml
check "the campaign of its README, with controls as factors, can be planned" "$ASSAY" run --dry-run controls.yaml
cp .out plan
check "... in blocks, one for each state" grep -q "4 of 4 states of the controls" plan
finish
