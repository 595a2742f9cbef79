#!/bin/bash
# assay fit smpi by the command line: the model, what it says of a row, and its table. Its numbers are tested in
# tests/unit/fit/smpi.c, what SimGrid makes of it in simgrid.sh.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

# Lines with a little noise that is not drawn, below 1000 byte, from there, and from 40000 on.
awk 'BEGIN {
    print "operation,size,duration"
    n = split("8 100 300 500 999 1000 3000 9000 20000 39999 40000 100000 200000 500000 900000", sizes)
    for (i = 1; i <= n; i++) for (k = 0; k < 10; k++) {
        s = sizes[i]; e = s < 1000 ? 1 : s < 40000 ? 2 : 3; z = 1 + 0.01 * sin(12.9898 * (10 * i + k))
        printf "MPI_Isend,%d,%.17g\n", s, z * (1e-6 + 1e-10 * s) * e
        printf "Send,%d,%.17g\n", s, z * (2e-6 + 2e-10 * s) * e
        printf "recv,%d,%.17g\n", s, z * (3e-6 + 3e-10 * s) * e
        printf "PingPong,%d,%.17g\n", s, z * (4e-5 + 3e-9 * s) * e
    }
    for (k = 0; k < 10; k++) { print "Iprobe,1,3e-7"; print "Test,1,2e-7" }
    print "Wtime,0,0.4"
}' >calls.csv
check "a fit" "$ASSAY" fit smpi calls.csv --set latency=10us --set bandwidth=1GB/s --set send-is-detached-thresh=0 -o smpi.json
report $(output 'breaks \(By\): 1000, 40000; found from the PingPong rows'; echo $?) "finds the breaks and says so"
report $([ "$(grep -c 'cv_log_score' .out)" = 0 ]; echo $?) "and scores no single rows"
check "the model" "$ASSAY" model check smpi.json
check "a row" "$ASSAY" model eval smpi.json operation=mpi_pingpong size=100
report $(output '(3\.9|4\.0)[0-9]*e-05'; echo $?) "is evaluated by the part that its operation names"
check "a table" "$ASSAY" model table smpi.json
report $(output 'lat_factor.*bw_factor'; echo $?) "has the factors"
check "a platform" "$ASSAY" export simgrid smpi.json --set hosts=2 -o platform.xml
report $(contains platform.xml 'smpi/lat-factor.*;1015:.*;40015:'; echo $?) "has the factors too"
report $(contains platform.xml 'smpi/ois.*;999:.*;39999:'; echo $?) "from the sizes that the breaks name, for SMPI takes what is larger than an entry"
refuse "no base" 2 "latency" "$ASSAY" fit smpi calls.csv
{ head -1 calls.csv; tail -n +2 calls.csv | grep -v PingPong | sort -s -t, -k1,1; } >costs.csv # no Send with its Recv behind it
check "without PingPong" "$ASSAY" fit smpi costs.csv --set latency=10us --set bandwidth=1GB/s --set breaks=1000,40000
report $(output 'no rows of PingPong: smpi/lat-factor and smpi/bw-factor are not known'; echo $?) "costs are computed, and what is missing is said"
report $(output 'SimGrid cannot use this model: there are no rows of the operation PingPong; measure them with'; echo $?) "with the way out"
check "a table that falls, by the rules of 2016" "$ASSAY" fit smpi --set rules=2016-07 --set find-breaks=no \
    --set latency=10us --set bandwidth=1GB/s -o falls.json <(awk -F, -v OFS=, '/Isend/ { $3 = 2e-5 - 1e-11 * $2 } 1' calls.csv)
report $(output 'SimGrid cannot use this model: smpi/ois is not positive for messages from 0 byte on; set rules=ping-pong'; echo $?) "is said not to be usable"
refuse "its export" 2 "smpi/ois from the model falls.json is -1e-11 for messages from 0 byte on; expected 0 or more: fit it with 'assay fit smpi' and rules=ping-pong" \
    "$ASSAY" export simgrid falls.json --set hosts=2
finish
