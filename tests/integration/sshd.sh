# Private ssh servers for integration tests: sourced after tap.sh. Everything lies in $scratch and on 127.0.0.1, nothing
# of the user's own ssh is read or written.
#
#   sshd_start NAME [OPTION...]  one more server; options as for sshd -o. Sets port_NAME; its log is $scratch/NAME.log
#   sshd_stop NAME               its listener and all sessions of it
#   known NAME                   the line of known_hosts for it
#
# $scratch/id logs in as $me everywhere, $scratch/known knows all servers that were started.
sshd=/usr/sbin/sshd
[ -x "$sshd" ] && command -v ssh-keygen >/dev/null || plan_skip "there is no OpenSSH server"
me=$(id -un)
servers=""
cleanup() { sshd_stop_all; }
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
chmod 755 "$scratch"
key() { ssh-keygen -q -t "${2:-ed25519}" ${4:+-b "$4"} -N "${3:-}" -C "$1" -f "$scratch/$1" </dev/null; }
key id && key host
cp "$scratch/id.pub" "$scratch/authorized"
: >"$scratch/known"

known() { local port="port_$1"; echo "[127.0.0.1]:${!port} $(cut -d' ' -f1,2 "$scratch/host.pub")"; }
sshd_start() {
    local name=$1 options=() port tries
    shift
    for option in "$@"; do options+=(-o "$option"); done
    for tries in 1 2 3 4 5 6 7 8 9 10; do
        port=$((20000 + RANDOM % 20000))
        # The first word counts for all but MaxStartups, where the last does.
        if "$sshd" -f /dev/null -o MaxStartups=200 "${options[@]}" -h "$scratch/host" -o ListenAddress=127.0.0.1:$port -E "$scratch/$name.log" \
            -o PidFile="$scratch/$name.pid" -o UsePAM=no -o StrictModes=no -o LogLevel=VERBOSE \
            -o AuthorizedKeysFile="$scratch/authorized" -o PermitRootLogin=prohibit-password 2>>"$scratch/sshd.err"; then
            # It binds its port after it has left for the background.
            eventually eval "[ -s '$scratch/$name.pid' ] || grep -q 'Cannot bind any address' '$scratch/$name.log'"
            if [ -s "$scratch/$name.pid" ]; then
                servers="$servers $name"
                printf -v "port_$name" %s $port
                known "$name" >>"$scratch/known"
                return 0
            fi
        fi
    done
    echo "# no server after $tries tries"; cat "$scratch/sshd.err"
    return 1
}
# A session is a child of the listener, in a session of its own.
sshd_stop() {
    local pid
    pid=$(cat "$scratch/$1.pid" 2>/dev/null) || return 0
    rm -f "$scratch/$1.pid"
    # shellcheck disable=SC2046
    kill -CONT "$pid" $(ps -o pid= --ppid "$pid") 2>/dev/null
    # shellcheck disable=SC2046
    kill -KILL $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null
    return 0
}
sshd_stop_all() { for server in $servers; do sshd_stop "$server"; done; }
