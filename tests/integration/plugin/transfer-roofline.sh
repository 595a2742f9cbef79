#!/bin/bash
# The methods transfer and roofline by the command line: what they find, tell and write, and that what they write says
# of a row what the measurements said.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
output() { grep -qE -- "$1" .out || { echo "# no line matches: $1"; head -30 .out | sed 's/^/# /'; return 1; } >&2; }
# close FOUND EXPECTED TOLERANCE, relative
close() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a != "" && (a - b) ^ 2 <= (t * b) ^ 2) }' || { echo "# '$1', expected $2"; return 1; } >&2; }
member() { grep -oE "\"$2\": [^,}]*" "$1" | head -1 | cut -d' ' -f2; } # member FILE NAME: the first number of that name

# A link of 6.34 GB/s and 41.5 us, measured to some 5 %; one group of one size, one of one row.
awk 'BEGIN {
    print "link,size,duration"
    for (i = 0; i < 60; i++) { s = 2 ^ (i % 20 + 6); printf "pcie,%.0f,%.9g\n", s, (41.5e-6 + s / 6.34e9) * (1 + 0.05 * sin(i * i)) }
    for (i = 0; i < 9; i++) printf "odd,64,%.9g\n", 1e-6 * i + 1e-6
    print "lone,64,1e-6"
}' >link.csv
check "a transfer" "$ASSAY" fit transfer link.csv --by link --set criterion=log -o link.json
report $(output '^fit-transfer: duration = 1 \+ size; by link$'; echo $?) "it says its terms"
report $(output '^  bandwidth +[0-9.e+]+ +[0-9.e+]+  By/s \(taken\)$' && output '^  latency +[0-9.e-]+ +[0-9.e-]+  s \(taken\)$' &&
    output '^  half_size .*  By ' && output '^  taken: columns without units are in By and s, or By/s$'; echo $?) \
    "bandwidth and latency are told with their errors"
report $(output 'link odd: rank 1 of 2: size is always 64'; echo $?) "a group of one size is named"
report $(output 'link lone: 1 row for 2 terms'; echo $?) "so is one of one row"
report $(close "$(member link.json bandwidth)" 6.34e9 0.05 && close "$(member link.json latency)" 41.5e-6 0.05; echo $?) "they are right"
report $(grep -q '"settings": {.*"criterion": "log"' link.json; echo $?) "the model says by which criterion"
for criterion in time bandwidth log; do
    check "by $criterion" "$ASSAY" fit transfer link.csv --by link --set criterion=$criterion -o $criterion.json
    check "... the model holds" "$ASSAY" model check $criterion.json
done
report $([ "$(member time.json latency)" != "$(member bandwidth.json latency)" ]; echo $?) "criteria differ"
check "the default is the source's, of bandwidths" "$ASSAY" fit transfer link.csv --by link -o default.json
report $([ "$(member default.json latency)" = "$(member bandwidth.json latency)" ]; echo $?) "... that is so"
check "time from standard input" sh -c "'$ASSAY' fit transfer - --by link --set criterion=time <link.csv"
check "and the others, of which the rows are kept" sh -c "'$ASSAY' fit transfer - --by link --set criterion=log <link.csv"

# Bandwidths in place of durations: the same numbers, another kind of model.
awk -F, -v OFS=, 'NR == 1 { print "link", "size", "bandwidth" } NR > 1 { print $1, $2, sprintf("%.17g", $2 / $3) }' link.csv >rates.csv
check "bandwidths" "$ASSAY" fit transfer rates.csv --response bandwidth --by link --set criterion=log -o rates.json
report $(close "$(member rates.json latency)" "$(member link.json latency)" 1e-12; echo $?) "have the latency of their durations"
check "their model holds" "$ASSAY" model check rates.json
report $(grep -q '"kind": "harmonic"' rates.json; echo $?) "it is harmonic"
# The model of the durations and that of the bandwidths say the same of a size.
printf 'link,size\npcie,65536\n' >rows.csv
"$ASSAY" model eval link.json --rows rows.csv >durations 2>err; "$ASSAY" model eval rates.json --rows rows.csv >bandwidths 2>>err
predicted() { # FILE PROGRAM: of each evaluated row, what PROGRAM makes of p, the prediction, and f, its flops
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { if ($i == "predicted") c = i; if ($i == "flops") k = i } next } { p = $c; f = $k; '"$2"' }' "$1"
}
report $(close "$(predicted durations 'printf "%.17g", 65536 / p')" "$(predicted bandwidths 'print p')" 1e-9; echo $?) \
    "evaluated, both say the same"
refuse "bandwidths taken for times where the unit is told" 2 "did you mean 'response'|has no parameter|criterion" \
    "$ASSAY" fit transfer link.csv --set criterion=loge
refuse "no size" 2 "which column is the size\?" sh -c "sed 1s/size/length/ link.csv >length.csv; '$ASSAY' fit transfer length.csv"
refuse "a size that is not there" 2 "there is no size column 'lenght'; did you mean 'length'" "$ASSAY" fit transfer length.csv --sizes lenght
refuse "terms" 2 "this method has its own" "$ASSAY" fit transfer link.csv --terms 1+size
check "an archive knows its units" "$ASSAY_BUILD/tests/unit/test-table-archive" --make "$scratch"
check "its bytes are the size" "$ASSAY" fit transfer ms.zip --sizes bytes --by none --set criterion=time -o milli.json
"$ASSAY" fit transfer plain.zip --sizes bytes --by none --set criterion=time -o plain.json >out 2>&1
report $(close "$(member milli.json bandwidth)" "$(member plain.json bandwidth)" 1e-9; echo $?) "what is told is in By/s, whatever the units"

# Two GPUs (1030 Gflop/s and 148 GB/s, 3950 and 250) by the equation of the improved form.
awk 'BEGIN {
    print "gpu,flops,bytes,duration"
    split("M2050 K20X", gpu, " "); f[1] = 1030e9; f[2] = 3950e9; b[1] = 148e9; b[2] = 250e9
    for (g = 1; g <= 2; g++) for (i = 0; i < 24; i++) {
        F = 1e9 * 2 ^ (i % 6); B = 1e9 * 2 ^ int(i / 6) * (1 + i % 3)
        printf "%s,%.0f,%.0f,%.17g\n", gpu[g], F, B, F / f[g] + B / b[g]
    }
}' >gpus.csv
check "a roofline" "$ASSAY" fit roofline gpus.csv --by gpu --set overhead=none -o gpus.json
report $(output '^  peak_flops +1\.03e\+12 .* flop/s ' && output '^  peak_bandwidth +1\.48e\+11 .* By/s ' &&
    output '^  ridge_intensity +6\.959.* flop/By '; echo $?) "M2050: peaks and ridge"
report $(output '^  peak_flops +3\.95e\+12 ' && output '^  peak_bandwidth +2\.5e\+11 '; echo $?) "K20X"
# Diffusion, 13 flop for 32 byte: 56.8 and 99.0 Gflop/s are published; LBM, 476 flop at 1.83: 214.5 on the M2050.
printf 'gpu,flops,bytes\nM2050,13,32\nK20X,13,32\nM2050,476,260.1092896\n' >kernels.csv
"$ASSAY" model eval gpus.json --rows kernels.csv >evaluated 2>err
predicted evaluated 'printf "%.1f\n", f / p / 1e9' >1
printf '56.8\n99.0\n214.5\n' >2
report $(cmp 1 2 >&2; echo $?) "what is published of two kernels"
check "the classical form" "$ASSAY" fit roofline gpus.csv --by gpu --set form=classical -o classical.json
report $(output '^  peak_flops ' && output '^  peak_bandwidth ' && grep -q '"kind": "maximum"' classical.json; echo $?) "is the greatest of two times"
check "... its model holds" "$ASSAY" model check classical.json gpus.json
awk -F, -v OFS=, 'NR == 1 { print "gpu", "flops", "bytes", "performance" } NR > 1 { print $1, $2, $3, sprintf("%.17g", $2 / $4) }' gpus.csv >performance.csv
for form in improved classical; do
    check "performances, $form" "$ASSAY" fit roofline performance.csv --response performance --by gpu --set overhead=none --set form=$form -o p.json
    check "... the model holds" "$ASSAY" model check p.json
done
report $(grep -q '"kind": "minimum"' p.json; echo $?) "... and is the least of two"
awk -F, 'NR == 1 || $2 == 1000000000 * 2 ^ 0 && $3 == 1000000000' gpus.csv >one.csv
refuse "one kernel" 2 "1 row for 3 terms|2 rows for 3 terms" "$ASSAY" fit roofline one.csv
refuse "a criterion that the form does not have" 2 "criterion 'log' of the form 'improved'" "$ASSAY" fit roofline gpus.csv --set criterion=log
refuse "no flops" 2 "which column has the flops\?" sh -c "cut -d, -f1,3,4 gpus.csv >no.csv; '$ASSAY' fit roofline no.csv"
finish
