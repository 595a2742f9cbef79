#!/bin/bash
# dahu-models.sh DATA FOLDER [DGEMM.csv]: model files of dahu, March 2019, from the folder `hpl` of the measured data (T. Cornebize,
# MIT): dgemm by cpu, the other kernels, messages between nodes (network) and within one (loopback).
# Sources: dahu_dgemm_polynomial_2019.csv, or the file named; threads.csv is of four nodes in July 2018, whose dgemm of 8192^3 had 3,422 to
# 3,487 Gflop/s on 128 cores (README.md, "dahu4"), the smaller terms and the noise those of the mean of 2019; README.md ("Other kernels' constants"); dahu_network_2019.xml.
set -eu
data=$1 to=$2 dgemm=${3:-dahu_dgemm_polynomial_2019.csv}

# model BY TERMS: lines of LABEL, estimates, coefficients of sigma.
model() {
    awk -v by="$1" -v terms="$2" '
        function factors(term, n, f, i, text) {
            n = term == "1" ? 0 : split(term, f, "*")
            for (i = 1; i <= n; i++) text = text (i > 1 ? ", " : "") "{\"column\": \"" f[i] "\", \"power\": 1}"
            return text
        }
        function columns(terms, i, text) {
            for (i = 1; i <= 3; i++)
                if (index(terms, substr("mnk", i, 1))) text = text (text ? ", " : "") "{\"name\": \"" substr("mnk", i, 1) "\", \"unit\": \"1\", \"type\": \"integer\"}"
            return text
        }
        BEGIN {
            count = split(terms, name, " ")
            printf "{\"assay_model\": 2, \"kind\": \"linear\", \"response\": {\"name\": \"duration\", \"unit\": \"s\"}, \"weights\": null,"
            printf " \"by\": [%s], \"terms\": [", by == "" ? "" : "\"" by "\""
            for (t = 1; t <= count; t++) printf "%s{\"name\": \"%s\", \"unit\": null, \"factors\": [%s]}", (t > 1) ? ", " : "", name[t], factors(name[t])
            printf "], \"columns\": [%s], \"origin\": {\"plugin\": \"fit-linear\", \"version\": \"1\", \"engine\": \"1\", \"created\": ", columns(terms)
            printf "\"2019-03-15T00:00:00Z\", \"rows\": 9, \"seed\": 1, \"settings\": {}, \"inputs\": [{\"name\": \"dahu.csv\", \"sha256\": \"0000000000000000000000000000000000000000000000000000000000000000\", \"run_id\": null, \"experiment\": null, \"rows\": 9}]}, \"units\": {}, \"skipped\": [], \"groups\": ["
        }
        {
            printf "%s\n{\"labels\": {%s}, \"rows\": 9, \"values\": {}, \"notes\": [], \"parts\": [{\"kind\": \"whole\", \"estimates\": [", (NR > 1) ? "," : "", by == "" ? "" : "\"" by "\": \"" $1 "\""
            for (t = 1; t <= count; t++) printf "%s{\"term\": \"%s\", \"estimate\": %s, \"standard_error\": null, \"t\": null, \"p\": null}", (t > 1) ? ", " : "", name[t], $(t + 1)
            printf "], \"covariance\": null, \"noise\": {\"kind\": \"N-2\", \"distribution\": \"half-normal\", \"constant\": %s, \"coefficients\": [", name[1] == "1" ? $(count + 2) : 0
            for (t = 1; t <= count; t++) printf "%s%s", (t > 1) ? ", " : "", name[t] == "1" ? 0 : $(count + t + 1)
            printf "]}, \"values\": {}, \"domain\": {}}]}"
        }
        END { print "]}" }'
}

mkdir -p "$to"
if [ "$dgemm" = threads.csv ]; then
    awk -F, '$1 == -1 { for (cpu = 1; cpu <= 8; cpu++) print cpu, $2, 2 / (3454.5e9 / 128) - ($5 + $6) / 8192, 0, $5, $6, $7, $8, $9, $10, $11 }' \
        "$data/dahu_dgemm_polynomial_2019.csv"
elif [ "$dgemm" = mean.csv ]; then # the mean of all cpus, as one
    awk -F, '$1 == -1 { print 1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 }' "$data/dahu_dgemm_polynomial_2019.csv"
elif head -1 "$data/$dgemm" | grep -q what; then # cpu,mu|sigma,mnk,mn,mk,nk,one
    awk -F, '$1 + 0 > 0 { line[$1, $2] = $7 " " $3 " " $4 " " $5 " " $6; cpu[$1] } END { for (c in cpu) print c, line[c, "mu"], line[c, "sigma"] }' \
        "$data/$dgemm" | sort -n
else
    awk -F, '$1 + 0 > 0 { print $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 }' "$data/$dgemm"
fi | model cpu '1 m*n*k m*n m*k n*k' >"$to/dgemm.json"
while read -r kernel terms estimate sigma; do
    model '' "$terms" <<<"all $estimate $sigma" >"$to/$kernel.json"
done <<'KERNELS'
dtrsm m*n*k 5.44554e-11 3.09e-12
dgemv m*n 1.2788e-9 0
dscal n 3.80e-10 0
idamax n 6.05e-10 0
daxpy 1 6.7e-7 0
dtrsv 1 2.44e-5 0
dlacpy m*n 3.87e-9 0
dlatcpy m*n 4.89e-9 0
dlaswp01T m*n 7.55e-9 0
dlaswp02N m*n 2.82e-8 0
dlaswp03T m*n 3.78e-9 0
dlaswp04T m*n 8.50e-9 0
KERNELS

# network LATENCY BANDWIDTH: what assay fit smpi would have written, from SimGrid's tables. An entry is of sizes above its own, 16
# bytes of envelope included; here of sizes from the next byte on.
network() {
    awk -v latency="$1" -v bandwidth="$2" '
        match($0, /id="smpi\/[a-z-]*"/) { id = substr($0, RSTART + 9, RLENGTH - 10); match($0, /value="[^"]*"/); value[id] = substr($0, RSTART + 7, RLENGTH - 8) }
        function parts(name, id, n, entry, i, f, from, to, text) {
            n = split(value[id], entry, ";")
            for (i = 1; i <= n; i++) {
                split(entry[i], f, ":"); from = f[1] + (i > 1); to = ""
                if (i < n) { split(entry[i + 1], g, ":"); to = ", \"to\": " (g[1] + 1) }
                text = text sprintf("%s\n{\"kind\": \"segment\", \"name\": \"%s\", \"from\": %s%s, \"estimates\": [%s, %s], \"covariance\": null, \"noise\": null, \"values\": {%s}, \"domain\": {}}",
                    first++ ? "," : "", name, (i > 1) ? from : 0, to, estimate("1", f[2]), estimate("size", f[3]), number("charged", 1))
            }
            return text
        }
        function estimate(term, value) { return "{\"term\": \"" term "\", \"estimate\": " value ", \"standard_error\": null, \"t\": null, \"p\": null}" }
        function number(name, value) { return "\"" name "\": " value }
        END {
            printf "{\"assay_model\": 2, \"kind\": \"smpi\", \"response\": {\"name\": \"duration\", \"unit\": \"s\"}, \"weights\": null, \"by\": [], \"over\": \"size\", \"named_by\": \"operation\", \"terms\": [{\"name\": \"1\", \"unit\": null, \"factors\": []}, {\"name\": \"size\", \"unit\": null, \"factors\": [{\"column\": \"size\", \"power\": 1}]}], \"columns\": [{\"name\": \"operation\", \"unit\": null, \"type\": null}, {\"name\": \"size\", \"unit\": \"By\", \"type\": null}], \"origin\": {\"plugin\": \"fit-smpi\", \"version\": \"1\", \"engine\": \"1\", \"created\": \"2019-03-15T00:00:00Z\", \"rows\": 9, \"seed\": 1, \"settings\": {}, \"inputs\": [{\"name\": \"dahu.csv\", \"sha256\": \"0000000000000000000000000000000000000000000000000000000000000000\", \"run_id\": null, \"experiment\": null, \"rows\": 9}]}, \"units\": {}, \"skipped\": [], \"groups\": [{\"labels\": {}, \"rows\": 9, \"values\": {}, \"notes\": [], \"parts\": ["
            printf "%s%s%s", parts("Send", "os"), parts("Isend", "ois"), parts("Recv", "or")
            n = split(value["lat-factor"], l, ";"); split(value["bw-factor"], b, ";")
            for (i = 1; i <= n; i++) {
                split(l[i], f, ":"); split(b[i], h, ":"); to = ""
                if (i < n) { split(l[i + 1], g, ":"); to = ", \"to\": " (g[1] + 1) }
                printf ",\n{\"kind\": \"segment\", \"name\": \"PingPong\", \"from\": %s%s, \"estimates\": [%s, %s], \"covariance\": null, \"noise\": null, \"values\": {%s, %s}, \"domain\": {}}", (i > 1) ? f[1] + 1 : 0, to, estimate("1", 0), estimate("size", 0), number("lat_factor", f[2]), number("bw_factor", h[2])
            }
            printf ",\n{\"kind\": \"whole\", \"name\": \"Iprobe\", \"estimates\": [%s, %s], \"covariance\": null, \"noise\": null, \"values\": {}, \"domain\": {}}", estimate("1", value["iprobe"]), estimate("size", 0)
            printf ",\n{\"kind\": \"protocol\", \"name\": \"protocol\", \"estimates\": [%s, %s], \"covariance\": null, \"noise\": null, \"values\": {%s, %s, %s, %s, %s}, \"domain\": {}}]}]}\n", estimate("1", 0), estimate("size", 0), number("latency", latency), number("bandwidth", bandwidth), number("async_small_thresh", value["async-small-thresh"]), number("send_is_detached_thresh", value["send-is-detached-thresh"]), number("envelope", 16)
        }' "$data/dahu_network_2019.xml"
}
network 1e-7 12.5e9 >"$to/network.json"               # two links of 0.05 us
network 0 18.348422228142745e9 >"$to/loopback.json"
