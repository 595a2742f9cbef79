#!/bin/bash
# The experiment hpl: real HPL on one and two ranks, checked for its physics, and the outputs of other HPLs.
. "$(dirname "$0")/../tap.sh"
command -v mpicc >/dev/null && command -v mpirun >/dev/null || plan_skip "no MPI"
. "$(dirname "$0")/../real-hpl.sh"
folder=$ASSAY_SOURCE/experiments/hpl

# ---- What HPL prints, whichever HPL ----
# A program that prints a file stands for xhpl.
mkdir "$scratch/other"
cp "$folder"/{hpl-rank,result.awk} "$scratch/other"
printf '%s\n' '#!/bin/sh' 'cat output' >"$scratch/other/xhpl"
chmod +x "$scratch/other/xhpl"
read_output() { (cd "$scratch/other" && cat >output && echo "mix  SWAP" >HPL.dat && sh hpl-rank no 1); }
last() { read_output 2>&1 | tail -n 1 | cut -d' ' -f2-5; }
flops() { awk -v N="$1" 'BEGIN { printf "%.9g", (2 * N * N * N / 3 + 3 * N * N / 2) / 1e9 / '"$2"' }'; }

is "HPL 2.3: the time is Gflops', which has more digits" "$(last <<'O'
T/V                N    NB     P     Q               Time                 Gflops
WR11C2R4        4000   192     1     2               0.52             8.2113e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.31415926e-03 ...... PASSED
O
)" "time=$(flops 4000 82.113) rate=82.113 residual=2.31415926e-03 passed=yes"
is "... but of a long run it is Time's, which has more then" "$(last <<'O'
WR11C2R4      100000   192     1     2            6789.12              9.820e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0023142 ...... PASSED
O
)" "time=6789.12 rate=$(flops 100000 6789.12) residual=0.0023142 passed=yes"
is "mpirun's stamps inside of lines are passed over" "$(last <<'O'
Wed Oct 10 12:00:01 2018<stdout>:PFACT :Wed Oct 10 12:00:01 2018<stdout>:    Crout
Wed Oct 10 12:00:09 2018<stdout>:WR00L2L4  Wed Oct 10 12:00:09 2018<stdout>:   2000  128   2   2      0.13      4.113e+01
[1,0]<stdout>:||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=Wed Oct 10 12:00:09 2018<stdout>:   0.0031415 ......Wed Oct 10 12:00:09 2018<stdout>: PASSED
O
)" "time=$(flops 2000 41.13) rate=41.13 residual=0.0031415 passed=yes"
is "AMD's column SWP is not taken for N" "$(last <<'O'
T/V            SWP      N    NB     P     Q         Time             Gflops
WR13R2C8         2   2000   232     2     2         0.13         4.1130e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.14150000e-03 ...... PASSED
O
)" "time=$(flops 2000 41.13) rate=41.13 residual=3.14150000e-03 passed=yes"
is "NVIDIA's rate a GPU is not taken for the rate" "$(last <<'O'
WC0           2000   576     2     2      0.13      4.113e+01 ( 1.028e+01)
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0031415 ...... PASSED
O
)" "time=$(flops 2000 41.13) rate=41.13 residual=0.0031415 passed=yes"
is "a residual that was not checked has not passed" "$(last <<'O'
WR11C2R4        4000   192     1     2               0.52             8.2113e+01
Finished      1 tests with the following results:
              1 tests completed without checking,
O
)" "time=$(flops 4000 82.113) rate=82.113 residual=nan passed=unchecked"
is "a residual that is too large has failed" "$(last <<'O'
WR11C2R4        4000   192     1     2               0.52             8.2113e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.31415926e+07 ...... FAILED
O
)" "time=$(flops 4000 82.113) rate=82.113 residual=1.31415926e+07 passed=no"
refuse "a vendor's own broadcast is refused by name" 1 "^hpl: broadcast 6 is a vendor's own, expected 0 to 5" read_output <<'O'
WR16C2R4        4000   192     1     2               0.52             8.2113e+01
O
refuse "no result is an error, with what HPL says of it" 1 "^hpl: HPL's output has 0 results, expected one; it says '\[0,0\] Memory allocation failed for A, x and b. Skip.'" read_output <<'O'
HPL ERROR from process # 0, on line 172 of function HPL_pdtest:
>>> [0,0] Memory allocation failed for A, x and b. Skip. <<<

O

# ---- Through assay ----
run() { # run NAME: the campaign of that name; its results are $scratch/results.csv
    archive=$("$ASSAY" run "$scratch/$1.yaml" -q -o "$scratch/runs" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
    member results/results.csv
}
member() { "$ASSAY" archive cat "${archive:-none}" "$1" >"$scratch/${1##*/}" 2>/dev/null; }
column() { # column NAME... [FILE]: those columns, separated by blanks
    local file=$scratch/results.csv
    [ ! -e "$scratch/${!#}" ] || { file=$scratch/${!#}; set -- "${@:1:$#-1}"; }
    awk -F, -v names="$*" 'BEGIN { count = split(names, name, " ") }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { for (i = 1; i <= count; i++) printf "%s%s", $at[name[i]], i < count ? " " : "\n" }' "$file"
}
all() { awk "function near(a, b) { return a / b > 0.9999 && a / b < 1.0001 } !($1) { print; bad = 1 } END { exit bad || NR != $2 }"; }
campaign() { # campaign NAME HPL FACTORS
    printf '%s\n' "experiment: hpl" "options: {hpl: '$2'}" "probes: none" \
        "design: {generate: factorial, factors: {$3}, repetitions: 1}" >"$scratch/$1.yaml"
}

# Sizes as numbers: whether shares of the memory that is free differ from block size to block size depends on the moment.
sed 's/N: \[80%\].*/N: [9600, 19200]/' "$ASSAY_SOURCE/examples/hpl.yaml" >"$scratch/plan.yaml"
"$ASSAY" run "$scratch/plan.yaml" --dry-run >"$scratch/plan"
check "a plan has what all units share once" contains "$scratch/plan" 'L1 = transposed, U = transposed, equilibration = yes'
check "... and columns with blanks between" test "$(grep -A2 'order  row' "$scratch/plan" | awk '{ print NF }' | sort -u | tr '\n' ' ')" = "8 "
check "... and of the file for HPL its beginning" contains "$scratch/plan" '^ *... and 2[0-9] more lines$'
campaign real "$xhpl" "N: [600], NB: [64], ranks: [1, 2], DEPTH: [0], PMAP: [column], PFACT: [left], NBMIN: [8], NDIV: [3], RFACT: [right],
    BCAST: [longM], SWAP: [spread-roll], L1: [not-transposed], U: [not-transposed], equilibration: ['no'], alignment: [16]"
run real
is "two units are done, on grids of 1 x 1 and 1 x 2" "$(column P Q passed | sort | xargs)" "1 1 yes 1 2 yes"
member results/raw/1-job-all.out
is "HPL says that it has what the factors say" "$(sed -n 's/ *: */: /; /^PMAP/,/^ALIGN/p' "$scratch/1-job-all.out" | grep -v '^[PQ]:' | paste -sd, | tr -s ' ')" \
    "PMAP: Column-major process mapping,PFACT: Left ,NBMIN: 8 ,NDIV: 3 ,RFACT: Right ,BCAST: BlongM ,DEPTH: 0 ,SWAP: Spread-roll (long),L1: no-transposed form,U: no-transposed form,EQUIL: no,ALIGN: 16 double precision words"
"$ASSAY" report "$archive" --best >"$scratch/HPL.dat" 2>"$scratch/err"
is "the HPL.dat of the best is the one that HPL read, with its numbers" "$(sed -n '3d; s/^\([0-9.]\{1,\}\) .*/\1/p' "$scratch/HPL.dat" | xargs | sed 's/ 1 [12] 16.0/ 1 Q 16.0/')" \
    "6 1 600 1 64 1 1 1 Q 16.0 1 0 1 8 1 3 1 2 1 5 1 0 1 64 1 1 0 16"
member logs/commands/001-setup/"$(uname -n)".out
check "setup's output has the hash of the program, and of all" \
    awk -v program="$(sha256sum <"$xhpl" | cut -c1-64)" '$1 == program { n++ } /^hpl key: [0-9a-f]+$/ { n++ } END { exit n != 2 }' "$scratch/$(uname -n).out"
check "the residual is that of rounding" all '$1 > 0 && $1 < 1' 2 < <(column residual)
check "rate x time is the number of operations" all 'near($1 * $2 * 1e9, 2 / 3 * 600 ^ 3 + 3 / 2 * 600 ^ 2)' 2 < <(column rate time)
check "the efficiency is the rate over that of dgemm on all ranks" all '$2 > 0 && near($4, $1 / $2 / $3)' 2 < <(column rate dgemm_rate ranks efficiency)
member results/tables/panels.csv
check "the columns of panels rise by NB, to nearly all of N, in both units" \
    all '$2 == 64 * ((NR - 1) % 9 + 1) && ($3 - $2 / 6) ^ 2 < 0.0026 && $4 > 0' 18 < <(column row column fraction gflops panels.csv)
member results/tables/phases.csv
is "the phases have their names" "$(column phase phases.csv | sort -u | paste -sd,)" "laswp,mxswp,pfact,rfact,up tr sv,update"
check "... and take no longer than all" all '$1 <= $2 + 0.03' 2 \
    < <(paste -d' ' <(column row seconds phases.csv | awk '{ sum[$1] = $2 > sum[$1] ? $2 : sum[$1] } END { print sum[1] + 0; print sum[2] + 0 }') <(column row time | sort -n | cut -d' ' -f2))

# ---- The environment of a login, and of a rank ----
# A locale with a decimal comma, by which mawk reads and writes numbers; and a rank of Open MPI that starts assay.
campaign login "$xhpl" "N: [300], NB: [32], ranks: [2]"
printf '%s\n' LC_NUMERIC 'decimal_point ","' 'thousands_sep ""' 'grouping -1' 'END LC_NUMERIC' >"$scratch/comma"
mkdir "$scratch/locales"
localedef -c -i "$scratch/comma" "$scratch/locales/xx_XX" >/dev/null 2>&1
login=(LOCPATH="$scratch/locales" LC_ALL=xx_XX OMPI_MCA_ess=pmi OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0)
in_login() { env "${login[@]}" "$@"; }
[ "$(in_login printf %.1f 0,5 2>/dev/null)" = 0,5 ] || skip "a decimal comma" "localedef makes no locale here"
printf '#!/bin/sh\nexec env %s "%s" "$@"\n' "${login[*]}" "$ASSAY" >"$scratch/assay"
chmod +x "$scratch/assay"
ASSAY=$scratch/assay run login
check "a login's decimal comma, and the variables of an outer rank, change nothing" \
    all '$1 == "yes" && near($2 * $3 * 1e9, 2 / 3 * 300 ^ 3 + 3 / 2 * 300 ^ 2)' 1 < <(column passed rate time)
member "nodes/$(uname -n)/facts.json"
check "... the archive has the locale of the commands" grep -qE '"LC_ALL=C(.UTF-8)?"' "$scratch/facts.json"

# HPLs that are wrong: programs that print what one could.
cat >"$scratch/xhpl" <<'O'
#!/bin/sh
echo "WR11C2R4     600    64     1     1      0.10    1.4450e+00"
echo "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=  1.31415926e+07 ...... FAILED"
O
chmod +x "$scratch/xhpl"
campaign wrong "$scratch/xhpl" "N: [600], NB: [64], ranks: [1]"
refuse "a unit whose residual is wrong has failed" 3 "unit 1 .* failed: it did not pass: passed is 'no'" "$ASSAY" run "$scratch/wrong.yaml" -o "$scratch/failed" --set dgemm=no
sed -i '$d' "$scratch/xhpl"
refuse "... and so has one whose residual was not checked" 3 "unit 1 .* failed: .*'residual' found 'nan'" \
    "$ASSAY" run "$scratch/wrong.yaml" -o "$scratch/failed" --set dgemm=no
refuse "a program that is not there is named" 3 "'/nowhere/xhpl' is not there, expected a program" \
    "$ASSAY" run "$scratch/wrong.yaml" -o "$scratch/failed" --set hpl=/nowhere/xhpl
campaign vendor "$xhpl" "N: [600], BCAST: [6]"
refuse "broadcasts that netlib's HPL does not have are refused by name" 2 "'BCAST' is 6, expected one of 1ring, 1ringM" "$ASSAY" run "$scratch/vendor.yaml" --dry-run

sed 's/^options.*//' "$ASSAY_SOURCE/examples/hpl.yaml" >"$scratch/example.yaml"
check "a dry run says that hpcc runs seven programs for a unit" sh -c '"$1" run "$2" --dry-run 2>"$2.err" | grep -q "hpl = hpcc (default): each unit runs all seven programs"' - "$ASSAY" "$scratch/example.yaml"
check "... which it does not for another" sh -c '! "$1" run "$2" --dry-run --set hpl=/x/xhpl 2>"$2.err" | grep -q "seven programs"' - "$ASSAY" "$scratch/example.yaml"

# ---- hpcc ----
if command -v hpcc >/dev/null; then
    cat >"$scratch/hpcc.yaml" <<'Y'
experiment: hpcc
design: {generate: factorial, factors: {N: [200], NB: [32], ranks: [2]}, repetitions: 1}
probes: none
Y
    run hpcc
    check "hpcc: the rate of HPL is that of its time" all 'near($1 * $2 * 1e12, 2 / 3 * 200 ^ 3 + 3 / 2 * 200 ^ 2) && $3 == 1' 1 < <(column HPL_Tflops HPL_time success)
    check "... and the slowest pair of ranks is slower than their mean" all '$1 > 0 && $2 >= $1 && $3 > 0 && $4 >= $3' 1 \
        < <(column AvgPingPongLatency MaxPingPongLatency MinPingPongBandwidth AvgPingPongBandwidth)
else skip "hpcc: the rate of HPL is that of its time" "there is no hpcc"; fi
is "the example has at most 14 lines" "$(($(grep -c . "$ASSAY_SOURCE/examples/hpl.yaml") <= 14))" 1
finish
