#!/bin/bash
# Units of MPI ranks on several nodes: who runs where, what is told of it, and that no rank outlives its unit, whatever
# ends it. Real Open MPI and MPICH; the nodes have no ssh to each other but the agents.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
command -v mpicc.openmpi >/dev/null || plan_skip "no Open MPI (libopenmpi-dev)"
move_clock
bed_first 5 --names 'n-%'
cd "$scratch" || exit 1

# What a rank does: WHAT is a factor. `held` waits for /tmp/go on its node, after it has made /tmp/held there.
mkdir source
cat >source/rank.c <<'E2'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : getenv("what");
    char host[64] = "", hosts[64][64], folder[512], folders[64][512];
    int rank, size, sum = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (access("notes.txt", F_OK) != 0) { printf("rank %d has no notes\n", rank); exit(4); }
    if (strcmp(what, "crash") == 0 && rank == 1) exit(3);
    if (strcmp(what, "spin") == 0) { fclose(fopen("/tmp/held", "w")); signal(SIGTERM, SIG_IGN); for (;;) ; }
    if (strcmp(what, "pause") == 0) for (;;) pause();
    if (strcmp(what, "held") == 0) { fclose(fopen("/tmp/held", "w")); while (access("/tmp/go", F_OK) != 0) usleep(10000); }
    gethostname(host, sizeof host - 1);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(host, 64, MPI_CHAR, hosts, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Gather(getenv("PWD") ? getenv("PWD") : "", 40, MPI_CHAR, folders, 40, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("sum %d size %d on", sum, size);
        for (int i = 0; i < size; i++) printf(" %s", hosts[i]);
        printf(" in %s\n", getcwd(folder, sizeof folder));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stdout);
    if (count > 2) _exit(0); /* MPICH 4.0.2 over UCX may hang in MPI_Finalize */
    MPI_Finalize();
    return 0;
}
E2
command='[./rank]' mpirun='[mpirun.openmpi, --mca, mpi_yield_when_idle, "1"]' # ranks share two processors
campaign() { # campaign NAME LEVELS-OF-FACTORS KEYS-OF-RUN KEYS-OF-TESTBED [MORE KEYS]
    cat >"$1.yaml" <<E2
name: $1
experiment:
  name: ranks
  source: {folder: source}
  setup: [[mpicc.${mpi:-openmpi}, -o, rank, rank.c]]
  factors: {ranks: {type: integer}, nodes: {type: integer}, what: {type: text, default: sum}}
  run: {placement: job, ranks: ranks, nodes: nodes, bind: none, mpirun: $mpirun, files: {notes.txt: "{ranks} ranks\\n"}, command: $command, $3}
  responses: {sum: {pattern: 'sum ([0-9]+)'}}
testbed: {$4, ssh-config: $BED/ssh_config, lease: 2min}
design: {generate: factorial, order: as-written, factors: {$2}}
probes: none
${5:-}
E2
}
run() { bed run "$ASSAY" run "$1.yaml" -o "$1" >"$1.log" 2>&1; }
results() { cat "$1"/*/results/results.csv; }
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { printf "%s ", $at }' "$1"/*/results/results.csv; }
# Nodes on which a process of a unit is left.
ranks_left() { for node in 1 2 3 4 5; do bed on $node sh -c 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" "\n" | grep -qxE "./rank|mpirun.openmpi|orted|/usr/bin/orted" && echo left'; done; }
is_none_left() { [ -z "$(ranks_left)" ]; }

# ---- Where ranks run

campaign where 'ranks: [2, 4], nodes: [2, 4]' 'timeout: 1h' 'hosts: "n-[1-4]"'
check "ranks on several nodes" run where
is "... all of them take part" "$(column where sum)" "1 1 6 6 "
is "... the results have the nodes that did it, not one that had no rank" "$(column where node)" "n-[1-2] n-[1-2] n-[1-2] n-[1-4] "
is "... as many on each as there must be" "$(cat where/*/results/raw/3-job-all.out | sed 's/ in .*//')" "sum 6 size 4 on n-1 n-1 n-2 n-2"
check "... in a folder that has one path everywhere" grep -q '^.*--wdir /tmp/assay-work-' where/*/logs/engine.log
check "... each row has the command line that started its ranks" \
    contains <(grep '"unit-command".*"node":"n-\[1-4\]"' where/*/journal.jsonl) '"arguments":\["mpirun.openmpi",.*"4",.*"./rank"\]'
check "... to which it is traced" contains <("$ASSAY" archive verify where/*.zip) ', 4 results traced$'
cat >plain.yaml <<E2
name: plain
experiment:
  name: plain
  factors: {nodes: {type: integer}}
  run: {placement: job, nodes: nodes, command: [echo, time 1]}
  responses: {time: {pattern: 'time ([0-9]+)'}}
testbed: {hosts: "n-[1-3]", ssh-config: $BED/ssh_config}
design: {generate: factorial, order: as-written, factors: {nodes: [2, 1, 3]}}
probes: none
E2
check "one command line on sets of nodes that differ" run plain
check "... to which each row is traced" contains <("$ASSAY" archive verify plain/*.zip) ' results traced$'
check "... the library is on record" grep -q '"mpi": "mpirun.openmpi (Open' where/*/software/versions.json
is "... nothing is left on the nodes" "$(ranks_left; for i in 1 2 3 4; do bed on $i sh -c 'ls -d /tmp/assay-*' 2>/dev/null; done)" ""

# Names of which Open MPI makes others: it cuts at the first dot, and reads digits as a number.
{ printf 'Host %s\n HostName %s\n' w.1.x n-1 w.2.x n-2 003 n-3 twin n-1; cat "$BED/ssh_config"; } >aliases
aliased() { campaign "$1" "$2" 'timeout: 1h' "hosts: [$3]"; sed -i "s,$BED/ssh_config,$scratch/aliases," "$1.yaml"; run "$1"; }
check "names that agree before the first dot, and one of digits" aliased names 'ranks: [3], nodes: [3]' "w.1.x, w.2.x, '003'"
is "... all take part" "$(sed 's/ on .*//' names/*/results/raw/1-job-all.out)" "sum 3 size 3"
aliased twins 'ranks: [2], nodes: [2]' 'n-1, twin'
check "two names of one machine are refused" grep -q "nodes n-1 and twin are one machine (host name 'n-1', the same boot id).* leave one of both names out" twins.log

if command -v mpicc.mpich >/dev/null; then
    mpi=mpich mpirun=mpirun.mpich command='[./rank, "{what}", brief]' campaign mpich 'ranks: [4], nodes: [4]' 'timeout: 1h' 'hosts: "n-[1-4]"'
    check "MPICH" run mpich
    is "... its ranks" "$(column mpich sum)" "6 "
else
    skip "MPICH" "not here (libmpich-dev)"
fi

# ---- Units that end badly

campaign bad 'ranks: [3], nodes: [3], what: [crash, sum]' 'timeout: 1h' 'hosts: "n-[1-3]"'
run bad
is "a rank that dies: its unit has failed, the next has not" "$(column bad what)" "sum "
check "... and it is said" grep -q 'unit 1 on node n-1 failed: the command' bad.log
# How it ended: on one node, since Open MPI 4.1.4 may crash while it sends to daemons of which one has just left.
campaign alone 'ranks: [3], nodes: [1], what: [crash]' 'timeout: 1h' 'hosts: "n-[1-3]"'
run alone
check "... with mpirun's own status and words" grep -q 'unit 1 on node n-1 failed: the command exited with status 3: .*Exit code: 3' alone.log
campaign spins 'ranks: [3], nodes: [3], what: [spin, sum]' 'timeout: 60 s' 'hosts: "n-[1-3]"'
bed run "$ASSAY" run spins.yaml -o spins >spins.log 2>&1 &
eventually bed on 1 test -e /tmp/held
advance 70s n-1
eventually grep -q 'unit 1 on node n-1 failed: the command ran past its time limit' spins.log
wait $!
is "ranks that do not end when they are told to: the next unit runs" "$(column spins what)" "sum "
is "... none of them is left" "$(ranks_left)" ""
campaign stuck 'ranks: [3], nodes: [3], what: [pause, sum]' 'timeout: 10h, idle-timeout: 60 s' 'hosts: "n-[1-3]"'
bed run "$ASSAY" run stuck.yaml -o stuck >stuck.log 2>&1 &
eventually sh -c "grep -q 'n-1, core all: mpirun' stuck/*/logs/engine.log"
step=6s hurry_beside "n-1 n-2 n-3" grep -q 'unit 1 on node n-1 failed: it printed nothing, and its ranks were idle, for 60 s; it was stopped' stuck.log
wait $!
is "ranks that are stuck are stopped" "$(column stuck what)" "sum "

# ---- Nodes and engines that are lost

campaign lost 'ranks: [3], nodes: [3], what: [held, sum]' 'timeout: 10h' 'hosts: "n-[2-4]", spares: n-5' 'node-loss: replace'
sed -i 's/what: .held, sum./what: [held]/; s/order: as-written/repetitions: 2/' lost.yaml
for i in 2 3 4 5; do bed on $i rm -f /tmp/held /tmp/go; done
bed run "$ASSAY" run lost.yaml -o lost >lost.log 2>&1 &
eventually bed on 4 test -e /tmp/held
eventually bed on 3 test -e /tmp/held
bed crash 2
hurry_beside "n-3 n-4 n-5" bed on 5 test -e /tmp/held
for i in 3 4 5; do bed on $i touch /tmp/go; done
wait $!
is "a node is lost in a unit: the run goes on with a spare" "$(column lost node | awk '{ print $NF }')" "n-[3-5]"
is "... all ranks take part" "$(column lost sum | awk '{ print $NF }')" "3"
is "... every unit is measured once, or has failed" "$({ column lost order | tr ' ' '\n'; sed -n 's/.*unit \([0-9]*\) on node.*failed.*/\1/p' lost.log; } | sort -u | tr -d '\n')" "12"
is "... and no rank of before is left" "$(ranks_left)" ""
bed reboot 2

# An mpirun that waits for /tmp/go, and the compiler that goes by its name.
for i in 2 3 4 5; do
    bed on $i sh -c 'cat >/tmp/mpirun.held; printf "#!/bin/sh\nexec mpicc.openmpi \"\$@\"\n" >/tmp/mpicc.held; chmod +x /tmp/mpi*.held' <<'E2'
#!/bin/sh
[ "$1" = --version ] || touch /tmp/held
while [ "$1" != --version ] && [ ! -e /tmp/go ]; do sleep 0.05; done
exec mpirun.openmpi "$@"
E2
done
campaign early 'ranks: [3], nodes: [3]' 'timeout: 10h' 'hosts: "n-[2-4]", spares: n-5' 'node-loss: replace'
sed -i "s|mpirun: .mpirun.openmpi, [^]]*.,|mpirun: /tmp/mpirun.held,|" early.yaml
for i in 2 3 4 5; do bed on $i rm -f /tmp/held /tmp/go; done
bed run "$ASSAY" run early.yaml -o early >early.log 2>&1 &
eventually bed on 2 test -e /tmp/held
bed crash 3
hurry_beside "n-2 n-4 n-5" grep -q 'node n-5 takes the place of node n-3' early.log
bed on 2 touch /tmp/go
wait $!
is "a node is lost while MPI is tried: the run goes on with a spare" "$(results early | grep -c '"n-.2,4-5."')" "1"
check "... with which it is tried again" test "$(grep -c 'node n-5, for node n-2' early/*/logs/engine.log)" = 2
bed reboot 3

campaign killed 'ranks: [3], nodes: [3], what: [held, sum]' 'timeout: 10h' 'hosts: "n-[3-5]"'
for i in 3 4 5; do bed on $i rm -f /tmp/held /tmp/go; done
bed run "$ASSAY" run killed.yaml -o killed >killed.log 2>&1 &
eventually bed on 4 test -e /tmp/held
pkill -KILL -f "^$ASSAY run killed.yaml"
wait $!
eventually test -n "$(ranks_left)"
for i in 3 4 5; do advance 200s n-$i; done
eventually is_none_left
check "the engine dies: when the lease is over no rank is left" is_none_left
for i in 3 4 5; do bed on $i touch /tmp/go; done
check "... the run goes on" bed run "$ASSAY" resume killed/*/
is "... and has all its units" "$(column killed sum)" "3 3 "

campaign few 'ranks: [3, 4], nodes: [4]' 'timeout: 1h' 'hosts: "n-[2-5]"'
bed refuse-logins 2
run few
is "without one of its nodes a run is partial" "$?" 6
bed accept-logins 2
is "... what the others can do is done" "$(column few sum)" "3 "
check "... the rest is missing" grep -q '^2,1,2,job,all,' few/*/results/missing.csv

# ---- A state that one node of a unit was in

campaign state 'ranks: [3], nodes: [3], what: [held, sum]' 'timeout: 10h' 'hosts: "n-[3-5]"' 'gates: {load: none, frequency: none, temperature: none, unwatched: none}'
sed -i 's/^probes: none/probes: 10ms/' state.yaml # what is read below is written when it has come to 16 KiB
for i in 3 4 5; do bed on $i rm -f /tmp/held /tmp/go; done
bed run "$ASSAY" run state.yaml -o state >state.log 2>&1 &
eventually bed on 5 test -e /tmp/held
bed on 5 sh -c 'echo 7 >/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count'
# The unit ends after the sample that shows it, so that the next begins after that, too.
eventually sh -c "grep -q ',7\\(,\\|\$\\)' state/*/nodes/n-5/probes/throttle.csv"
for i in 3 4 5; do bed on $i touch /tmp/go; done
wait $!
is "a processor of one node is slowed down: the unit is flagged, and the next is not" "$(column state state.flags)" "throttle  "

# ---- What makes no sense

campaign many 'ranks: [5], nodes: [5]' 'timeout: 1h' 'hosts: "n-[1-4]"'
refuse "more nodes than there are" 2 "many.yaml:7:[0-9]+: 'nodes' is 5, but the testbed has 4;" bed run "$ASSAY" run many.yaml --dry-run
campaign half 'ranks: [4], nodes: [2]' 'ranks-per-node: 1' 'hosts: "n-[1-4]"'
refuse "more ranks than the nodes are given" 2 "half.yaml:7:[0-9]+: 4 ranks do not fit on 2 nodes with 1 ranks each" bed run "$ASSAY" run half.yaml --dry-run
sed 's/placement: job/placement: core/' where.yaml >core.yaml
refuse "ranks on a core" 2 "core.yaml:7:[0-9]+: 'placement' is 'core', expected node or job, since 'run' has ranks" bed run "$ASSAY" run core.yaml --dry-run
finish
