# shellcheck shell=bash
# A real OAR on the nodes of a test bed: PostgreSQL, its server and an sshd for its own on the front end, its sshd on each
# node. Sourced after test-bed.sh, with a bed up: `oar_up || plan_skip "no OAR"`, and `oar_down` at the end. It is this
# machine's own PostgreSQL and /etc/oar/oar.conf that are used, so that only one test at a time may have it.

oar_up() {
    local node number=0
    command -v Almighty oarsub pg_ctlcluster >/dev/null || return 1
    oar_settings=$(mktemp)
    cp /etc/oar/oar.conf "$oar_settings"
    sed -i -e 's/^\(DB_BASE_PASSWD\)=.*/\1="oar"/; s/^\(DB_BASE_PASSWD_RO\)=.*/\1="oar_ro"/' \
        -e "s/^SERVER_HOSTNAME=.*/SERVER_HOSTNAME=\"$(hostname)\"/; s/^JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD/#&/" /etc/oar/oar.conf
    bed run pg_ctlcluster 15 main start && eventually bed run su postgres -c 'psql -qc "select 1"' >/dev/null || return
    bed run su postgres -c 'dropdb --if-exists oar' || return
    bed run oar-database --create --db-is-local >/dev/null 2>&1 || return
    mkdir -p /run/oar
    bed run /usr/sbin/sshd -f /etc/oar/sshd_config -o ListenAddress=127.0.0.1 -o ListenAddress=10.77.255.254 -o UsePAM=no \
        -o StrictModes=no -o PidFile=/run/oar/front.pid || return
    # A session of its own, whose processes are ended together.
    bed run setsid sh -c 'echo $$ >/run/oar/almighty.pid; exec /usr/sbin/Almighty' >/dev/null 2>&1 &
    for property in '-a cpu' '-a core' '-c -a host' '-c -a cluster'; do
        # shellcheck disable=SC2086 # options
        eventually bed run oarproperty $property >/dev/null || return
    done
    while read -r node; do
        number=$((number + 1))
        bed on "$node" sh -c 'mkdir -p /run/oar && /usr/sbin/sshd -f /etc/oar/sshd_config -o ListenAddress=0.0.0.0 -o UsePAM=no \
            -o StrictModes=no -o PidFile=/run/oar/sshd.pid' || return
        bed run oarnodesetting -a -h "$node" -p "host=$node" -p cluster=bed -p cpu=$number -p core=$number -p cpuset=0 >/dev/null || return
    done <"$BED/nodes"
}

oar_down() {
    kill -- "-$(cat /run/oar/almighty.pid)"
    kill "$(cat /run/oar/front.pid)"
    bed run pg_ctlcluster 15 main stop -m fast
    cat "$oar_settings" >/etc/oar/oar.conf
    rm -f "$oar_settings"
}
