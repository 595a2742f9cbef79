#!/bin/bash
# What others need to run a command on many nodes: pdsh, clush, parallel-ssh, xargs with ssh, and ansible, each with a new
# connection a command and with persistent masters (OpenSSH's ControlMaster). Wall time and CPU time of the client side.
#
#   tests/benchmarks/fan-out-peers.sh [--quick] [--counts "1 4 16"] [--peers "pdsh clush"] [--repeats N]
#
# ASSAY_BUILD names the build tree; default: build/release. Needs root: the nodes are tests/test-bed's. Peers that are not installed
# are left out, aloud. Another benchmark may source this file and put its own figures beside these:
#
#   peers_start COUNT                     a bed with COUNT nodes, ready for all workloads
#   peer_command PEER KIND COUNT COMMAND  sets the array `command`; KIND is cold (a connection a command) or mux (masters)
#   peer_measure KIND                     runs `command` on the front end and sets wall, cpu and rss; fails if it fails
#   peer_best PEER KIND COUNT COMMAND     the same, the fastest of $repeats
set -u
peers_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${ASSAY_BUILD:=$peers_root/build/release}"
peers_measure=$ASSAY_BUILD/tests/benchmarks/measure
. "$peers_root/tests/test-bed/test-bed.sh"
repeats=3
all_peers="pdsh clush parallel-ssh xargs ansible"

# ---- The bed -----------------------------------------------------------------------------------------------------

peers_start() { # peers_start COUNT
    [ -x "$peers_measure" ] || { echo "fan-out-peers: build first: $peers_measure is not there" >&2; return 1; }
    bed up "$1" || return
    # A megabyte of lines, as a program prints them, made once: what is measured is its way here.
    base64 /dev/urandom | head -c 1000000 >"$BED/megabyte"
    local node
    for ((node = 1; node <= $1; node++)); do bed on $node tee /tmp/megabyte <"$BED/megabyte" >/dev/null || return; done
    mkdir "$BED/masters"
    { printf 'Host *\n    ControlMaster auto\n    ControlPath %s/masters/%%h\n    ControlPersist yes\n' "$BED"; cat "$BED/ssh_config"; } >"$BED/ssh_config.mux"
}

# Masters to the first COUNT nodes.
peers_warm() {
    head -n "$1" "$BED/nodes" | bed run xargs -P 16 -I{} ssh -F "$BED/ssh_config.mux" {} true
}

# ---- The peers ---------------------------------------------------------------------------------------------------

peer_is_here() {
    case $1 in xargs) true ;; *) command -v "$1" >/dev/null ;; esac
}

# Each node's output goes to a file of its own below $BED/out where the peer can do that, to one file otherwise.
peer_command() {
    local peer=$1 kind=$2 count=$3 configuration=$BED/ssh_config hosts=$BED/hosts.$3; shift 3
    [ "$kind" = cold ] || configuration=$BED/ssh_config.mux
    head -n "$count" "$BED/nodes" >"$hosts"
    case $peer in
    pdsh) command=(env "PDSH_SSH_ARGS_APPEND=-F $configuration" pdsh -R ssh -f "$count" -w "node[1-$count]" "$*") ;;
    clush) command=(clush -o "-F $configuration" -f "$count" -w "node[1-$count]" --outdir "$BED/out" -q "$*") ;;
    parallel-ssh) command=(parallel-ssh -x "-F $configuration" -p "$count" -t 0 -h "$hosts" -o "$BED/out" "$*") ;;
    xargs) # the shell that parts the outputs is small beside an ssh
        command=(xargs -a "$hosts" -P "$count" -I{} sh -c "ssh -F $configuration {} '$*' >$BED/out/{}") ;;
    ansible)
        local own=(-o ControlMaster=no)
        [ "$kind" = cold ] || own=()
        command=(env "ANSIBLE_SSH_ARGS=-F $configuration ${own[*]}" ANSIBLE_NOCOLOR=1 ansible -i "$hosts" all
            -f "$count" -m raw -a "$*") ;;
    esac
}

# ns of CPU time of all processes in the front end's network: the masters, between two commands.
masters_cpu() {
    [ "$1" = mux ] || { echo 0; return; }
    bed run sh -c 'cat $(grep -la "$BED/masters/" /proc/[0-9]*/cmdline 2>/dev/null | sed "s/cmdline/schedstat/") 2>/dev/null' |
        awk '{sum += $1} END {printf "%d", sum}'
}

peer_measure() { # peer_measure KIND
    local before after
    rm -rf "$BED/out"; mkdir "$BED/out"
    before=$(masters_cpu "$1")
    bed run "$peers_measure" "${command[@]}" 3>"$BED/figures" >"$BED/out/all" 2>"$BED/errors" </dev/null || return
    after=$(masters_cpu "$1")
    read -r cpu rss wall <"$BED/figures"
    cpu=$(awk -v own="$cpu" -v masters=$((after - before)) 'BEGIN {printf "%.3f", own + masters / 1e9}')
}

peer_best() { # peer_best PEER KIND COUNT COMMAND
    local best_wall='' best_cpu best_rss bytes i
    peer_command "$@"
    for ((i = 0; i < repeats; i++)); do
        peer_measure "$2" || { wall=failed cpu=- rss=-; return 1; }
        if [ -z "$best_wall" ] || awk -v a="$wall" -v b="$best_wall" 'BEGIN {exit !(a < b)}'; then
            best_wall=$wall best_cpu=$cpu best_rss=$rss
        fi
    done
    wall=$best_wall cpu=$best_cpu rss=$best_rss
    case $4 in *megabyte*) # a figure for what did not arrive is none
        bytes=$(cat "$BED"/out/* | wc -c)
        [ "$bytes" -ge $(($3 * 1000000)) ] || { wall=short; return 1; } ;;
    esac
}

# ---- The tables --------------------------------------------------------------------------------------------------

peers_table() { # peers_table TITLE KIND COMMAND
    local title=$1 kind=$2 what=$3 peer count
    printf '\n%s: wall s (client CPU s)\n%-14s' "$title" ''
    for count in $counts; do printf '%17s' "$count"; done
    echo
    for peer in $peers; do
        printf '%-14s' "$peer"
        for count in $counts; do
            peer_best "$peer" "$kind" "$count" "$what" || sed "s/^/# $peer: /" "$BED/errors" | head -3 >&2
            printf '%17s' "$wall ($cpu)"
        done
        echo
    done
}

fan_out_peers() {
    local counts="1 4 16 64 128" peers=$all_peers wanted most peer load
    while [ $# -gt 0 ]; do
        case $1 in
        --quick) counts="1 4 16" repeats=1 ;;
        --counts) counts=${2:?}; shift ;;
        --peers) peers=${2:?}; shift ;;
        --repeats) repeats=${2:?}; shift ;;
        *) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; return 2 ;;
        esac
        shift
    done
    wanted=$peers peers=
    for peer in $wanted; do
        if peer_is_here "$peer"; then peers="$peers $peer"; else echo "fan-out-peers: $peer is not installed" >&2; fi
    done
    most=$(tr ' ' '\n' <<<"$counts" | sort -n | tail -1)
    load=$(cut -d' ' -f1 /proc/loadavg)
    peers_start "$most" || return
    echo "$(nproc) processors for client and nodes together, load $load before; curve25519, quick" \
        "acknowledgements; best of $repeats"
    peers_table "true, a connection a command" cold true
    peers_table "1 MB of output from each node, a connection a command" cold "cat /tmp/megabyte"
    peers_warm "$most" || return
    peers_table "true, over persistent masters" mux true
    peers_table "1 MB of output from each node, over persistent masters" mux "cat /tmp/megabyte"
    bed down
}

[ "${BASH_SOURCE[0]}" != "$0" ] || fan_out_peers "$@"
