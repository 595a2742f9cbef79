# shellcheck shell=bash
# A real Slurm on the nodes of a test bed: munged and slurmctld on its front end, a slurmd on each node. Sourced after
# test-bed.sh, with a bed up: `slurm_up`, which skips the script where there is no Slurm and fails where that does not come
# up, and `slurm_down` at the end. SLURM is its folder.

slurm_up() {
    local name node
    for name in slurmctld slurmd munged; do command -v $name >/dev/null || plan_skip "no Slurm (slurm-wlm, munge)"; done
    SLURM=$(mktemp -d /run/assay-slurm-XXXXXX)
    chmod 755 "$SLURM"
    mkdir -p "$SLURM/state"
    export SLURM_CONF=$SLURM/slurm.conf
    head -c 1024 /dev/urandom >"$SLURM/munge.key"
    chmod 400 "$SLURM/munge.key"
    cat >"$SLURM_CONF" <<END
ClusterName=bed
SlurmctldHost=$(hostname)(10.77.255.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$SLURM/munge.sock
CredType=cred/munge
StateSaveLocation=$SLURM/state
SlurmdSpoolDir=/run/slurmd
SlurmdPidFile=/run/slurmd.pid
SlurmctldPidFile=$SLURM/slurmctld.pid
SlurmdLogFile=/run/slurmd.log
SlurmctldLogFile=$SLURM/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=300
BatchStartTimeout=120
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
$(while read -r node; do echo "NodeName=$node NodeAddr=$(bed run getent hosts "$node" | cut -d' ' -f1) CPUs=2 RealMemory=500 State=UNKNOWN"; done <"$BED/nodes")
PartitionName=test Nodes=ALL Default=YES MaxTime=01:00:00 State=UP
PartitionName=hidden Nodes=ALL Hidden=YES MaxTime=01:00:00 State=UP
END
    echo CgroupPlugin=cgroup/v1 >"$SLURM/cgroup.conf"
    bed run munged --socket="$SLURM/munge.sock" --key-file="$SLURM/munge.key" --pid-file="$SLURM/munge.pid" \
        --log-file="$SLURM/munge.log" --seed-file="$SLURM/munge.seed" --force || return
    bed run slurmctld || return
    # On the nodes: the same files, a munged and a slurmd each.
    for node in $(cat "$BED/nodes"); do
        { sed "s|^AuthInfo=.*|AuthInfo=socket=/run/munge.sock|" "$SLURM_CONF" | slurm_put "$node" slurm.conf; } &&
            slurm_put "$node" cgroup.conf <"$SLURM/cgroup.conf" && slurm_put "$node" munge.key <"$SLURM/munge.key" &&
            bed on "$node" sh -c 'umask 022; cd /run && chmod 400 munge.key && mkdir slurmd && munged --socket=/run/munge.sock \
                --key-file=/run/munge.key --pid-file=/run/munge.pid --log-file=/run/munge.log --seed-file=/run/munge.seed --force &&
                SLURM_CONF=/run/slurm.conf slurmd' || return
    done
    eventually slurm_is_idle
}
slurm_put() { bed on "$1" sh -c "cat >/run/$2"; } # slurm_put NODE FILE: stdin as a file below /run
slurm_is_idle() { [ "$(bed run sinfo -h -o '%t' | sort -u)" = idle ]; }

slurm_is_away() { ! pgrep -F "$1" >/dev/null 2>&1; }
slurm_down() {
    local file
    for file in slurmctld munge; do
        kill "$(cat "$SLURM/$file.pid")" && eventually slurm_is_away "$SLURM/$file.pid"
    done
    rm -rf "$SLURM"
}
