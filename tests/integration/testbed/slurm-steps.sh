#!/bin/bash
# What runs in the job of a real Slurm: MPI, a unit that starts steps of its own, dgemm; and what is asked of the processors.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/integration/slurm-bed.sh"
command -v mpicc.openmpi >/dev/null || plan_skip "no Open MPI (libopenmpi-dev)"
bed_first 2 --machine intel-pstate:cores=1,threads=2
bed can kernel-files || plan_skip "no FUSE here"
cleanup() { [ -z "${SLURM:-}" ] || slurm_down; }
slurm_up || { report 1 "Slurm comes up"; finish; }
cd "$scratch" || exit
there() { bed run env HOME=/root "$ASSAY" "$@"; }
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { printf "%s ", $at }' "$1"/*/results/results.csv; }
srun="{slurm: {nodes: 2, walltime: 10min}, launcher: srun}"
ssh="{slurm: {nodes: 2, walltime: 10min}, ssh-config: $BED/ssh_config}"

# ---- MPI ranks that assay starts, by either launcher
mkdir source
cat >source/rank.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
    int rank, sum = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rank++;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1) printf("sum %d\n", sum);
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stdout);
    if (count > 1) _exit(0); /* MPICH 4.0.2 over UCX may hang in MPI_Finalize */
    MPI_Finalize();
    return 0;
}
C
ranks() { # ranks NAME TESTBED
    cat >"$1.yaml" <<END
name: $1
experiment:
  name: ranks
  source: {folder: source}
  setup: [[mpicc.openmpi, -o, rank, rank.c]]
  factors: {ranks: {type: integer}}
  run: {placement: job, ranks: ranks, nodes: 2, bind: none, mpirun: [mpirun.openmpi, --mca, mpi_yield_when_idle, "1"], command: [./rank]}
  responses: {sum: {pattern: 'sum ([0-9]+)'}}
testbed: $2
design: {generate: factorial, order: as-written, factors: {ranks: [2, 4]}}
probes: none
END
}
ranks by-ssh "$ssh"
check "ranks of MPI on the nodes of a job, by ssh" there run by-ssh.yaml -o by-ssh
is "... all take part" "$(column by-ssh sum)" "3 10 "
ranks by-srun "$srun"
check "by steps of srun" there run by-srun.yaml -o by-srun
is "... all take part" "$(column by-srun sum)" "3 10 "
if command -v mpicc.mpich >/dev/null; then
    ranks by-hydra "$srun"
    sed -i 's/mpicc.openmpi/mpicc.mpich/; s/mpirun: .[^]]*]/mpirun: mpirun.mpich/; s/command: ...rank./command: [.\/rank, brief]/' by-hydra.yaml
    check "MPICH's" there run by-hydra.yaml -o by-hydra
    is "... all take part" "$(column by-hydra sum)" "3 10 "
else
    skip "MPICH's" "not here (libmpich-dev)"
fi

# ---- Units that are launchers themselves: beside the agent's step, which shares its processors
mkdir own
cat >own/by <<'END'
#!/bin/sh
# The name of this node alone, by a step or by mpirun.
export SLURM_CONF=/run/slurm.conf OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
case $1 in
srun) exec srun --overlap --nodes=1 --ntasks=1 --nodelist="$(hostname)" hostname ;;
mpirun) exec mpirun.openmpi --host "$(hostname)" -n 1 hostname ;;
esac
END
chmod +x own/by
own() { # own NAME LAUNCHERS TESTBED
    cat >"$1.yaml" <<END
name: $1
experiment:
  name: own
  source: {folder: own}
  factors: {by: {type: text}}
  run: {placement: node, command: [./by, '{by}']}
  responses: {host: {pattern: '(node[0-9])', type: text}}
testbed: $3
design: {generate: factorial, factors: {by: [$2]}}
probes: none
END
}
own launchers "srun, mpirun" "$srun"
check "units that call srun and mpirun" there run launchers.yaml -o launchers
is "... each on its node" "$(paste -d' ' <(column launchers node | xargs -n1) <(column launchers host | xargs -n1) | sort | tr '\n' ' ')" \
    "node1 node1 node1 node1 node2 node2 node2 node2 "

cat >dgemm.yaml <<END
experiment: dgemm
options: {blas: reference}
testbed: $srun
design: {generate: factorial, factors: {m: [64], n: [64], k: [32, 64]}}
probes: none
END
check "dgemm" there run dgemm.yaml -o dgemm
is "... on every core of both nodes" "$(column dgemm node | tr ' ' '\n' | sort | uniq -c | awk '$2 {print $2}' | tr '\n' ' ')" "node1 node2 "

# ---- What is asked of the processors, and how they are found
mkdir bin
printf '#!/bin/sh\necho "$*" >>%s/sruns\nexec %s "$@"\n' "$scratch" "$(command -v srun)" >bin/srun
chmod +x bin/srun
asked="walltime: 10min, options: [--cpu-freq=userspace, --hint=nomultithread]"
own asked srun "${srun/walltime: 10min/$asked}"
PATH=$scratch/bin:$PATH check "a governor is asked for" there run asked.yaml -o asked
is "... of the step that the agent runs in, one a node" "$(grep -c -- '--cpu-freq=userspace' sruns)" 2
check "what the nodes have instead is said" grep -q 'nodes node\[1-2\]: controls are observed, not set: governor [a-z]* (the job asks for userspace), frequency .*, hyperthreads on (the job asks for off)' asked/*/logs/engine.log
check "without such options, what they have" grep -q 'controls are observed, not set: governor [a-z]*, frequency [^(]*$' launchers/*/logs/engine.log
own found mpirun "${ssh/walltime: 10min/$asked}"
check "by ssh, where Slurm sets nothing" there run found.yaml -o found
check "likewise" grep -q 'controls as found: governor [a-z]* (the job asks for userspace)' found/*/logs/engine.log
finish
