#!/bin/bash
# assay archive import: archives of peanut in all their shapes, and tables of anybody, become archives on which every
# other command works; what is hostile or wrong is refused with its place.
# shellcheck disable=SC2046 # $(...; echo $?) is one number
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
export TMPDIR=$scratch/temporary ASSAY_HISTORY=$scratch/history.sqlite
mkdir temporary
command -v zip >/dev/null || plan_skip "zip is not installed"
cat_of() { "$ASSAY" archive cat "$1" "$2"; }
# json ARCHIVE MEMBER PATTERN: a member on one line matches.
json() { cat_of "$1" "$2" | tr -d '\n' | tr -s ' \t' ' ' >flat.json && contains flat.json "$3"; }
# import NAME: the folder NAME as an archive of peanut, imported as NAME.zip.
import() {
    rm -f "$1.zip" "$1-peanut.zip"
    (cd "$1" && zip -qr "../$1-peanut.zip" .) && "$ASSAY" archive import peanut "$1-peanut.zip" -o "$1.zip"
}

# ---- Shapes, as of the code of peanut 0.0.1 --------------------------------------------------------------------
# job FOLDER CLASS MONTH HOST...: what every archive has.
job() {
    local folder=$1 class=$2 month=$3 host; shift 3
    mkdir -p "$folder"
    cat >"$folder/info.yaml" <<YAML
cluster: made
command: /home/x/.local/bin/peanut $class run x --jobid site:7 --expfile exp.csv
expfile:
- exp.csv
git_repositories:
- hash: 323ed812d816c332a117b4132a6a8ba459fbad05
  path: openblas
  url: https://example.org/openblas.git
installfile: install.yaml
jobid: 7
peanut_version: 0.0.1
site: site
timestamp:
  run_exp:
    start: '2020-$month-13 18:37:13.500000'
    stop: '2020-$month-13 18:49:22.000000'
  setup:
    start: '2020-$month-13 18:18:12.112880'
    stop: '2020-$month-13 18:37:13.443634'
YAML
    for host in "$@"; do
        printf '%s:\n  arp: {}\n  cpu: A processor\n  gcc: 6.3.0\n  kernel: 4.9.0\n  mpi: %s\n  version: Linux version 4.9.0\n' "$host" "''" >>"$folder/info.yaml"
        mkdir -p "$folder/information/$host"
        for pu in 0 1 2 3; do printf 'processor\t: %d\nmodel name\t: Made CPU 1\nmicrocode\t: 0x2a\nphysical id\t: %d\ncore id\t\t: %d\n\n' $pu $((pu % 2)) $((pu / 2)); done \
            >"$folder/information/$host/cpuinfo.txt"
        cat >"$folder/information/$host/topology.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<topology><object type="Machine" os_index="0"><info name="Architecture" value="x86_64"/>
<object type="NUMANode" os_index="0" local_memory="1000"/><object type="NUMANode" os_index="1" local_memory="2000"/></object></topology>
XML
    done
    printf 'warmup_time: 600\nmulticore: False\nopenblas: v0.3.1\n' >"$folder/install.yaml"
    echo 'a log of peanut' >"$folder/commands.log"
}
teardown() { printf "  teardown:\n    start: '2020-%s-13 18:49:22.100000'\n    stop: '2020-%s-13 18:50:00.250000'\n" "$2" "$2" >"$1/teardown"
    sed -i "/^  setup:/{
        r $1/teardown
        N
    }" "$1/info.yaml"; rm "$1/teardown"; }
made() { echo "made-$1.site.grid5000.fr"; }

job blas BLASCalibration 05 "$(made 1)" "$(made 2)"
sizes='100,200,300 400,200,600 700,900,100 300,300,800 900,100,500 600,800,700 200,700,900 800,600,200 50,900,40 1000,1000,30'
for s in $sizes; do IFS=, read -r m n k <<<"$s"; echo "dgemm, $m,$n,$k,$n,$n,$n"; done >blas/exp.csv
{ echo function,m,n,k,lda,ldb,ldc,timestamp,duration,core,hostname
  for node in 2 1; do for core in 0 1 2; do for s in $sizes; do
    IFS=, read -r m n k <<<"$s"
    awk -v m="$m" -v n="$n" -v k="$k" -v core=$core -v node=$node -v host="$(made $node)" 'BEGIN {
        printf "dgemm,%d,%d,%d,%d,%d,%d,%.6f,%.9e,%d,%s\n", m, n, k, n, n, n, 100 - (m + n) / 100 + core / 10 + node / 100,
            (1e-6 + (1 + core % 2) * 1e-10 * m * n * k + 3e-9 * m * n) * (1 + ((m + 3 * n + 7 * k + core) % 11 - 5) / 2000), core, host }'
  done; done; done
  echo "dgemm,1,1,1,1,1,1,,1e-3,0,$(made 1)"
} >blas/result.csv
cat >blas/monitoring.csv <<EOF
hostname,timestamp,interrupts,memory_available,temperature_core_0,temperature_core_7,frequency_core_0,frequency_core_3,power_package-0,bytes_sent_eno1
$(made 1),2020-05-13 18:40:20.500000,12,1000,41.0,50,2100000000,2200000000,60.5,7
$(made 2),2020-05-13 18:40:10.000000,5,900,39.0,50,2000000000,,55,8
$(made 1),2020-05-13 18:40:10.250000,11,1001,40.0,50,2300000000,2400000000,60.25,6
EOF
printf 'timestamp,hostname,temperature,sensor_id\n2020-05-13 18:25:39.5,%s,51.0,0\n' "$(made 1)" >blas/temperatures.csv
cat >blas/history.json <<EOF
[{"command": "echo \\"a, b\\"", "date": {"duration": 0.5, "start": "2020-05-13 18:18:13.000000", "stop": "2020-05-13 18:18:13.500000"},
  "directory": "/tmp", "hostnames": ["$(made 1)", "$(made 2)"], "nodes_type": "allnodes", "return_code": 0, "stdout": "a, b"},
 {"command": "false", "date": {"duration": 0.25, "start": "2020-05-13 18:18:14.000000", "stop": "2020-05-13 18:18:14.250000"},
  "directory": "/tmp", "hostnames": ["$(made 1)", "$(made 2)"], "nodes_type": "allnodes", "return_code": {"a": 0, "b": 1}}]
EOF
teardown blas 05
check "an archive of BLAS is imported" import blas
report $(output '^measurements +60$' && output '^nodes +2$' && output "^sha256 +$(sha256sum <blas.zip | cut -d' ' -f1)$"; echo $?) "it says how much, and the hash"
report $(output '1 of 61 rows are left out, the first on line 62: a cell is empty'; echo $?) "and what is left out, and where it is"
check "it verifies" "$ASSAY" archive verify blas.zip
report $(output '^blas.zip: verified: completed import of BLASCalibration, '; echo $?) "and says that it is an import"
cat_of blas.zip results/results.csv >results.csv
is "results have the columns of a run" "$(head -1 results.csv)" \
    "row,repetition,order,block,attempt,node,core,start,start_monotonic,function,m,n,k,lda,ldb,ldc,duration,timestamp,cpu"
is "no measurement is lost, and none is changed" \
    "$(awk -F, 'NR > 1 { print $10","$11","$12","$13","$14","$15","$16","$18","$17","$7","$6 }' results.csv)" "$(sed 1d blas/result.csv | sed '$d')"
is "the processor of a core is that of its topology" "$(awk -F, 'NR > 1 { print $7, $19 }' results.csv | sort -u | tr '\n' ';')" "0 0;1 1;2 0;"
is "row is that of the design" "$(cat_of blas.zip design.csv | sed -n "$(($(awk -F, 'NR == 5 { print $1 }' results.csv) + 1))p")" "dgemm,300,300,800,300,300,300"
is "the order is that of the time stamps" "$(awk -F, 'NR > 1 { print $3, $18 }' results.csv | sort -n | cut -d' ' -f2 | sort -cn 2>&1)" ""
report $(json blas.zip run.json '"kind": "import"' && json blas.zip run.json '"started": "2020-05-13T16:18:12.112[+]00:00", "ended": "2020-05-13T16:50:00.250'; echo $?) \
    "local times of summer are in UTC"
report $(json blas.zip run.json "\"format\": \"peanut\", \"file\": \"blas-peanut.zip\", \"sha256\": \"$(sha256sum <blas-peanut.zip | cut -d' ' -f1)\", \"engine\": \"peanut 0.0.1\"" &&
    json blas.zip run.json '"kept": \[ "commands.log" \]' && json blas.zip run.json '"warmup_time": "600", "multicore": "False"'; echo $?) \
    "what it was made from, and what has no other place, is named"
is "what was imported is there, byte for byte" "$(cat_of blas.zip imported/result.csv | sha256sum)" "$(sha256sum <blas/result.csv)"
is "monitoring is a table, with times in UTC and their order" "$(cat_of blas.zip results/tables/monitoring.csv | sed -n '1p;3p')" \
    "row,repetition,order,block,attempt,node,core,start,start_monotonic,interrupts,memory_available,temperature_core_0,temperature_core_7,frequency_core_0,frequency_core_3,power_package-0,bytes_sent_eno1
1,1,1,1,1,made-2.site.grid5000.fr,all,2020-05-13T16:40:10.000000000Z,,5,900,39.0,50,2000000000,,55,8"
report $(json blas.zip datapackage.json '"name": "frequency_core_0", "type": "integer", "unit": "Hz"' && json blas.zip datapackage.json '"name": "power_package-0", "type": "number", "unit": "W"'; echo $?) "with units"
is "so are the temperatures at its ends" "$(cat_of blas.zip results/tables/temperatures.csv | tail -1)" "1,1,1,1,1,made-1.site.grid5000.fr,all,2020-05-13T16:25:39.500000000Z,,51.0,0"
report $(json blas.zip "nodes/$(made 1)/facts.json" '"cpu_model": "Made CPU 1", "microcode": "0x2a", "pus": .*"physical_cores_usable": 4, "memory_total_bytes": 3000' &&
    json blas.zip "nodes/$(made 1)/facts.json" '"index": 3, "core": 1, "package": 1, "first_sibling": 3'; echo $?) "facts of the nodes are there"
is "files of nodes too" "$(cat_of blas.zip "nodes/$(made 2)/raw/cpuinfo.txt" | sha256sum)" "$(sha256sum <"blas/information/$(made 2)/cpuinfo.txt")"
is "commands are a table" "$(cat_of blas.zip logs/commands.csv | tail -2 | tr '\n' ';')" \
    "2020-05-13T16:18:13.000000000Z,0.5,made-[1-2].site.grid5000.fr,/tmp,\"echo \"\"a, b\"\"\",0;2020-05-13T16:18:14.000000000Z,0.25,made-[1-2].site.grid5000.fr,/tmp,false,;"
if python3 -c 'import jsonschema' 2>/dev/null; then
    cat_of blas.zip run.json >run.json
    cat_of blas.zip "nodes/$(made 1)/facts.json" >facts.json
    check "records keep to their schemas" python3 -c '
import json, jsonschema, sys
for name in "run", "facts":
    schema = json.load(open(sys.argv[1] + "/" + name + ".schema.json"))
    jsonschema.Draft202012Validator(schema).validate(json.load(open(name + ".json")))' "$ASSAY_SOURCE/archive-format/schemas"
else skip "records keep to their schemas" "no python3-jsonschema here"; fi
check "imported again" "$ASSAY" archive import peanut blas-peanut.zip -o again.zip
is "it is the same archive" "$(sha256sum <blas.zip)" "$(sha256sum <again.zip)"

# ---- What works on it ------------------------------------------------------------------------------------------
check "fit" "$ASSAY" fit blas.zip -o blas.json
report $(output "^$(made 1)/0 +20 .* (9.99.|1.00.|1)e-1[01] " && output "^$(made 1)/1 +10 .* (1.99.?|2|2.00.?)e-10 "; echo $?) "finds what each processor was made with"
"$ASSAY" fit linear blas.zip --terms m*n*k -o other.json >/dev/null
check "compare" "$ASSAY" compare blas.json other.json --data blas.zip
check "report" "$ASSAY" report blas.zip
report $(output '^BLASCalibration by 2e-9 \* m \* n \* k / duration, more is better: 10 settings, 60 measurements; units failed: 0, not measured: 0$'; echo $?) "has all of it"
sed -i 's/-05-/-06-/' blas/info.yaml
cp -r blas later && check "a later job" import later
check "history add" "$ASSAY" history add blas.zip later.zip
check "history list" "$ASSAY" history list
report $(output '2020-05-13.*BLASCalibration' && output '2020-06-13.*BLASCalibration'; echo $?) "has both, by their times"
check "history check" "$ASSAY" history check
refuse "it is not run again" 2 'this archive cannot be run again' "$ASSAY" run blas.zip

# ---- Other shapes ----------------------------------------------------------------------------------------------
job old BLASCalibration 12 "$(made 3)"
echo dgemm,10,20,30,30,30,30 >old/exp.csv
printf 'function,m,n,k,lda,ldb,ldc,timestamp,duration,core\ndgemm,10,20,30,30,30,30,1.5,2.5e-05,3\n' >old/result.csv
check "without a column of hosts" import old
is "it is the one node's" "$(cat_of old.zip results/results.csv | sed -n 2p)" "1,1,1,1,1,$(made 3),3,,,dgemm,10,20,30,30,30,30,2.5e-05,1.5,1"
report $(json old.zip run.json '"started": "2020-12-13T17:18:12.112[+]'; echo $?) "local times of winter are in UTC"

job multi BLASCalibration 05 "$(made 1)"
echo dgemm,10,20,30,30,30,30 >multi/exp.csv
printf 'function,m,n,k,lda,ldb,ldc,timestamp,duration,core,hostname\ndgemm,10,20,30,30,30,30,1.5,2.5e-05,all,%s\n' "$(made 1)" >multi/result.csv
check "of all cores together" import multi
is "core is all, and no processor's" "$(cat_of multi.zip results/results.csv | sed -n 2p)" "1,1,1,1,1,$(made 1),all,,,dgemm,10,20,30,30,30,30,2.5e-05,1.5,all"

job hpl HPL 05 "$(made 1)" "$(made 2)"
header=matrix_size,block_size,proc_p,proc_q,pfact,rfact,bcast,depth,swap,mem_align,process_per_node,thread_per_process
printf '%s\n5000,128,1,2,1,2,2,1,0,8,1,4\n6000,128,1,2,1,2,2,1,0,8,1,4\n' $header >hpl/exp.csv
printf '%s,time,gflops,residual,start_timestamp,stop_timestamp\n' $header >hpl/results.csv
for n in 5000 6000; do echo "$n,128,1,2,1,2,2,1,0,8,1,4,$((n / 1000)).25,20.5,0.0045,2020-05-13 18:40:0$((n / 1000)).5,2020-05-13 18:41:00.25"; done >>hpl/results.csv
echo 'a trace' >hpl/trace_blas_0.csv
check "of HPL" import hpl
is "its units are of all nodes, with their times" "$(cat_of hpl.zip results/results.csv | sed -n '1p;3p' | cut -d, -f1-11,22-)" \
    "row,repetition,order,block,attempt,node,core,start,start_monotonic,matrix_size,block_size,time,gflops,residual
2,1,2,1,1,made-[1-2].site.grid5000.fr,all,2020-05-13T16:40:06.500000000Z,,6000,128,6.25,20.5,0.0045"
report $(json hpl.zip run.json '"kept": \[ "commands.log", "trace_blas_0.csv" \]' && json hpl.zip run.json '"nodes": \[ "made-1[^]]*", "made-2[^]]*" \]'; echo $?) "traces are kept, and the nodes are known"
check "the best setting of HPL" "$ASSAY" report hpl.zip
report $(output 'HPL by gflops, more is better: 2 settings'; echo $?) "is by its rate"

job mpi MPICalibration 05 "$(made 1)" "$(made 2)"
printf 'Recv,100\nPingPong,2000\nRecv,100\n' >mpi/exp.csv
echo 'First breakpoint:  1420' >mpi/breakpoints
mkdir mpi/exp
printf 'Recv,100,12.500000,1.250000e-06\nRecv,100,13.500000,1.500000e-06\n' >mpi/exp/exp_Recv.csv
for size in 1 10 100 1000 2000; do printf 'PingPong,%d,13.000000,9.5%de-06\n' $size $size; done >mpi/exp/exp_PingPong.csv
: >mpi/exp/exp_Test.csv
check "of a calibration of MPI" import mpi
is "the files of all operations are one table" "$(cat_of mpi.zip results/results.csv | tail -3 | tr '\n' ' ')" \
    "2,1,6,1,1,made-[1-2].site.grid5000.fr,all,,,PingPong,2000,9.52000e-06,13.000000 1,1,1,1,1,made-[1-2].site.grid5000.fr,all,,,Recv,100,1.250000e-06,12.500000 1,2,7,1,1,made-[1-2].site.grid5000.fr,all,,,Recv,100,1.500000e-06,13.500000 "
report $(json mpi.zip run.json '"kept": \[ .*"breakpoints", ' && json mpi.zip datapackage.json '"name": "size", "type": "integer", "unit": "By"'; echo $?) "breakpoints are kept, and sizes have a unit"
check "fit smpi takes it" "$ASSAY" fit smpi mpi.zip --set latency=1us --set bandwidth=1GB/s

job aborted BLASCalibration 05 "$(made 1)"
echo 'aborted: true' >>aborted/info.yaml
echo dgemm,10,20,30,30,30,30 >aborted/exp.csv
check "that was aborted before there were results" import aborted
report $(json aborted.zip run.json '"status": "interrupted", "error": "peanut was told to end' && json aborted.zip run.json '"name": "collect", "status": "not reached"' &&
    json aborted.zip run.json '"units_done": 0'; echo $?) "it says so"
check "and verifies" "$ASSAY" archive verify aborted.zip
refuse "but there is nothing to fit" 2 "results" "$ASSAY" fit linear aborted.zip
cp multi/result.csv aborted/
check "that was aborted with results" import aborted
report $(json aborted.zip run.json '"units_done": 1'; echo $?) "has them"

# ---- Wrong ones ------------------------------------------------------------------------------------------------
# wrong NAME CODE PATTERN: what blas becomes by changes in the folder `wrong` is refused, and nothing is written.
wrong() {
    rm -f wrong.zip wrong-peanut.zip
    (cd wrong && zip -qr ../wrong-peanut.zip .)
    refuse "$1" "$2" "$3" "$ASSAY" archive import peanut wrong-peanut.zip -o wrong.zip
    [ ! -e wrong.zip ] && [ ! -e wrong.zip.part ] || report 1 "$1: an archive was written"
    rm -rf wrong
}
cp -r old wrong; sed -i 's/2.5e-05/fast/' wrong/result.csv
wrong "a duration that is no number" 2 "^assay: wrong-peanut.zip:result.csv:2:29: 'fast' is no number; the response 'duration' is in s"
cp -r old wrong; echo 'dgemm,1' >>wrong/result.csv
wrong "a short row" 2 'wrong-peanut.zip:result.csv:3:'
cp -r old wrong; printf 'a: [\n' >>wrong/info.yaml
wrong "info.yaml that is no YAML" 2 'wrong-peanut.zip:info.yaml:[0-9]+'
cp -r old wrong; rm wrong/result.csv
wrong "no results" 2 'there are no results in it; expected result.csv, results.csv or exp'
cp -r old wrong; rm wrong/info.yaml
wrong "no info.yaml" 2 'this is no archive of peanut: there is no info.yaml in it'
cp -r old wrong; sed -i '/^made/d' wrong/info.yaml
wrong "no nodes" 2 "expected a key a host"
cp -r old wrong; sed -i 's/2020-12-13/someday/' wrong/info.yaml
wrong "no times" 2 "there is no time timestamp.setup.start"
cp -r old wrong; echo '{"a": 1}' >wrong/history.json
wrong "a history that is no list" 2 'history.json:1:1: this is a mapping; expected a list of commands'
cp -r old odd; printf 'hostname,timestamp\nhere' >odd/monitoring.csv; rm -r odd/information
check "samples that were cut while they were written, and nodes of which nothing is known, do not matter" import odd
report $(output 'monitoring.csv is no table, and is in imported/ only: odd-peanut.zip:monitoring.csv:2:'; echo $?) "which is said"
is "then the processor is the core" "$(cat_of odd.zip results/results.csv | sed -n 2p)" "1,1,1,1,1,$(made 3),3,,,dgemm,10,20,30,30,30,30,2.5e-05,1.5,3"
check "and it can be verified" "$ASSAY" archive verify odd.zip
refuse "an archive of assay" 2 'this is an archive of assay already' "$ASSAY" archive import peanut old.zip -o wrong.zip
refuse "a target that is there" 2 'already there' "$ASSAY" archive import peanut old-peanut.zip -o old.zip
refuse "no target" 2 'expected -o ARCHIVE.zip' "$ASSAY" archive import peanut old-peanut.zip
refuse "another format" 2 "'walnut' cannot be imported; expected peanut or csv" "$ASSAY" archive import walnut old-peanut.zip -o wrong.zip
head -c 700 old-peanut.zip >cut.zip
refuse "a zip that was cut" 5 'cut.zip' "$ASSAY" archive import peanut cut.zip -o wrong.zip
hostile=0
for zip in "$ASSAY_SOURCE"/archive-format/samples/invalid/*.zip; do
    "$ASSAY" archive import peanut "$zip" -o wrong.zip >/dev/null 2>.err
    code=$?
    [ $code -eq 5 ] || [ $code -eq 2 ] || { echo "# exit $code: $zip"; hostile=1; }
done
report $hostile "hostile zips are refused"
check "nothing is left of what was refused" test -z "$(ls -A temporary; ls -d wrong.zip* 2>/dev/null)"

# ---- Tables of anybody -----------------------------------------------------------------------------------------
cat >'my times.csv' <<'EOF'
rows;columns;duration (ms);host;began;run;comment
100;200;2.5;a;2026-03-01 10:00:05.250;1;warm
100;200;2.75;a;2026-03-01 10:00:06;2;
300;400;NA;b;2026-03-01 10:00:01;1;"odd; one"
300;400;12.5;b;2026-03-01 10:00:02;2;
EOF
cat >mapping.yaml <<'YAML'
name: transpose
factors: [rows, columns]
responses: {duration: ms}
node: host
start: began
repetition: run
utc_offset: "+02:00"
model: {method: linear, response: duration, terms: rows*columns}
answer: {response: duration, best: least}
YAML
check "a table by a mapping" "$ASSAY" archive import csv 'my times.csv' --mapping mapping.yaml -o mine.zip
report $(output "the column 'comment' is in the imported file only"; echo $?) "what is left out is said"
is "its rows" "$(cat_of mine.zip results/results.csv | tr '\n' ' ')" \
    "row,repetition,order,block,attempt,node,core,start,start_monotonic,rows,columns,duration 1,1,3,1,1,a,all,2026-03-01T08:00:05.250000000Z,,100,200,2.5 1,2,4,1,1,a,all,2026-03-01T08:00:06.000000000Z,,100,200,2.75 2,1,1,1,1,b,all,2026-03-01T08:00:01.000000000Z,,300,400, 2,2,2,1,1,b,all,2026-03-01T08:00:02.000000000Z,,300,400,12.5 "
is "the file is in it, under a name that archives have" "$(cat_of mine.zip imported/my-times.csv | sha256sum)" "$(sha256sum <'my times.csv')"
report $(json mine.zip datapackage.json '"name": "duration", "type": "number", "unit": "ms"' &&
    json mine.zip run.json '"started": "2026-03-01T08:00:01.000[+]00:00", "ended": "2026-03-01T08:00:06' && json mine.zip run.json '"nodes": \[ "a", "b" \]'; echo $?) "units, times and nodes are known"
check "it verifies" "$ASSAY" archive verify mine.zip
check "fit, as the mapping says" "$ASSAY" fit mine.zip -o mine.json
check "report, as the mapping says" "$ASSAY" report mine.zip
report $(output '^transpose by duration, less is better: 2 settings'; echo $?) "ranks by it"
check "history add" "$ASSAY" history add mine.zip
printf 'size,latency_us,node\n1,1.5,a\n1024,2.5,a\n' >guess.csv
check "a table whose names say what columns are" "$ASSAY" archive import csv guess.csv -o guess.zip
is "is read by them" "$(cat_of guess.zip results/results.csv | tail -1 | cut -d, -f1-8,10-)" "2,1,2,1,1,a,all,,1024,2.5"
report $(json guess.zip datapackage.json '"name": "latency_us", "type": "number", "unit": "us".*"role": "response"' && output 'the time of the run is that of the file'; echo $?) "with units, and says what it assumed"
printf 'N,note,gflops\n1,,20.5\n2,warm,21.5\n' >rate.csv
check "a rate without a unit, and a column that begins empty" "$ASSAY" archive import csv rate.csv -o rate.zip
report $(output "the unit of 'gflops' is not known; give it in a mapping" && output "the column 'note' is in the imported file only" && output '^measurements +2$'; echo $?) "are taken, and said"
printf 'N,answer\n1,2\n3,5\n' >plain.csv
refuse "a table without any hint" 2 "plain.csv:1: no column says by its name that it was measured; expected one with a unit" "$ASSAY" archive import csv plain.csv -o plain.zip
sed 's/^# responses: .*/responses: {answer: "1"}/; s/^factors: .*/factors: [N]/' "$scratch/.out" >started.yaml
check "the mapping that is printed is one to start from" "$ASSAY" archive import csv plain.csv --mapping started.yaml -o plain.zip
# no MAPPING CODE PATTERN NAME: my times.csv by that mapping is refused.
no() { printf '%s\n' "$1" >no.yaml; refuse "$3" 2 "$2" "$ASSAY" archive import csv 'my times.csv' --mapping no.yaml -o no.zip; }
no 'responses: {durations: ms}' "my times.csv: no column 'durations'; did you mean 'duration'" "a column that is not there is refused, with the nearest"
no 'factor: [rows]' "no.yaml:1:1: .*'factor'.*'factors'" "so is a key"
no '{factors: [rows], responses: {rows: ms}}' "the column 'rows' has two meanings" "and a column twice"
no '{factors: [rows], responses: {comment: s}}' "my times.csv:2:[0-9]+: 'warm' is no number; the response 'comment' is in s" "and a response that is no number, with its place"
no '{responses: {duration: ms}, start: began}' "my times.csv:2:[0-9]+: '2026-03-01 10:00:05.250' is no time; .*utc_offset" "and a local time without an offset"
no '{responses: {duration: ms}, start: began, utc_offset: noon}' "utc_offset is 'noon'; expected" "and an offset that is none"
no '{responses: {duration: ms}, repetition: comment}' "my times.csv:2:[0-9]+: the repetition 'warm' is no whole number of at least 1" "and a repetition that is none"
refuse "a mapping for peanut" 2 'mapping is for csv' "$ASSAY" archive import peanut old-peanut.zip --mapping mapping.yaml -o no.zip
refuse "a table that is not there" 2 "cannot open 'nothing.csv'" "$ASSAY" archive import csv nothing.csv -o no.zip
: >empty.csv
refuse "an empty table" 2 'empty.csv' "$ASSAY" archive import csv empty.csv -o no.zip
check "nothing is left of those" test -z "$(ls -A temporary; ls -d no.zip* 2>/dev/null)"

# ---- A real one ------------------------------------------------------------------------------------------------
if [ -f "$data/peanut/peanut_yeti.zip" ]; then
    check "a real archive" "$ASSAY" archive import peanut "$data/peanut/peanut_yeti.zip" -o yeti.zip
    cat_of yeti.zip results/results.csv >yeti.csv
    # node, cpu, rows, total duration, flop, as gflops.csv has them; sums to 12 digits
    is "has the trusted sums of each processor" "$(awk -F, 'NR > 1 { split($6, host, /[-.]/); key = host[2] "," $19; n[key]++; s[key] += $17; f[key] += 2 * $11 * $12 * $13 }
        END { for (key in n) printf "%s,%d,%.10f,%.0f\n", key, n[key], s[key], f[key] }' yeti.csv | sort)" \
        "$(awk -F, 'NR > 1 { printf "%s,%s,%d,%.10f,%s\n", $1, $2, $3, $4, $5 }' "$data/peanut/gflops.csv")"
    cat_of yeti.zip results/tables/monitoring.csv | awk -F, '
        NR == 1 { for (c = 1; c <= NF; c++) if (split($c, word, "_") == 3 && word[2] == "core" && word[3] < 64) { kind[c] = word[1]; cpu[c] = word[3] % 4 } }
        NR > 1 { split($6, host, /[-.]/); split($8, at, /[T:Z]/); t = at[2] * 3600 + at[3] * 60 + at[4] - (16 * 3600 + 37 * 60 + 13.444088)
            for (c in kind) { key = host[2] "," cpu[c] "," kind[c]; x = $c / (kind[c] == "frequency" ? 1e9 : 1); all++
                if (t > 60 && t < 240) { n[key]++; s[key] += x; q[key] += x * x } } }
        END { for (key in n) printf "%s,%.5f,%.4f\n", key, s[key] / n[key], sqrt((q[key] - s[key] ^ 2 / n[key]) / (n[key] - 1)); print all >"samples" }' | sort >monitoring
    # Between 60 and 240 s after run_exp began, by processor: PU mod 4, of the 64 PUs that the nodes have.
    is "has the trusted means and deviations of frequency and temperature" "$(cat monitoring)" \
        "$(awk -F, 'NR > 1 { printf "%d,%d,frequency,%.5f,%.4f\n%d,%d,temperature,%.5f,%.4f\n", $6, $8, $1, $2, $6, $8, $3, $4 }' "$data/peanut/monitoring_stats.csv" | sort)"
    is "has as many samples" "$(cat samples)" "$(sed -n 's/.*"monitoring_rows": \([0-9]*\).*/\1/p' "$data/peanut/import_checks.json")"
    check "can be fitted" "$ASSAY" fit yeti.zip
    check "and reported" "$ASSAY" report yeti.zip
else skip "a real archive" "no $data/peanut here"; fi

finish
