# shellcheck shell=bash
# A real OAR on the nodes of a test bed: PostgreSQL, its server and an sshd for its own on the front end, its sshd on each
# node. Sourced after test-bed.sh: `oar_take || plan_skip "no OAR"`, then, with a bed up, `oar_up`, and `oar_down` at the end.
# It is this machine's own PostgreSQL and /etc/oar/oar.conf that are used, so that only one test at a time may have it.

# Waits until no other test has it; the users of such a test are made after this.
oar_take() {
    command -v Almighty oarsub pg_ctlcluster >/dev/null || return 1
    exec {oar_lock}>/run/assay-oar.lock && flock -w 1800 "$oar_lock" # until this script and all that it starts end
}

oar_up() {
    local node number=0
    oar_settings=$(mktemp)
    cp /etc/oar/oar.conf "$oar_settings"
    sed -i -e 's/^\(DB_BASE_PASSWD\)=.*/\1="oar"/; s/^\(DB_BASE_PASSWD_RO\)=.*/\1="oar_ro"/' \
        -e "s/^SERVER_HOSTNAME=.*/SERVER_HOSTNAME=\"$(hostname)\"/; s/^JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD/#&/" \
        -e 's/^#\?\(WALLTIME_CHANGE_ENABLED\)=.*/\1="yes"/; s/^#\?\(WALLTIME_MAX_INCREASE\)=[0-9].*/\1=3600/' /etc/oar/oar.conf
    # Debian starts it on the machine itself when it is installed, and one that runs does not start a second time, in the bed.
    ! pg_ctlcluster 15 main status >/dev/null 2>&1 || { postgres_ran=yes && pg_ctlcluster 15 main stop -m fast; } || return
    bed run pg_ctlcluster 15 main start && eventually bed run su postgres -c 'psql -qc "select 1"' >/dev/null || return
    bed run su postgres -c 'dropdb --if-exists oar' || return
    bed run oar-database --create --db-is-local >/dev/null 2>&1 || return
    mkdir -p /run/oar /run/sshd # an sshd that never ran as a service has none yet
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

# Its REST API at https://10.77.255.254:6668/oarapi, for USER with PASSWORD; $oar_api gets the certificate of its authority.
oar_api_up() { # oar_api_up USER PASSWORD
    local module modules=/usr/lib/apache2/modules
    [ -e /usr/lib/cgi-bin/oarapi/oarapi.cgi ] && [ -e $modules/mod_fcgid.so ] && command -v apache2 htpasswd >/dev/null || return 1
    oar_api=$(mktemp -d /var/tmp/assay-oarapi-XXXXXX)
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority \
        -addext 'subjectAltName=IP:10.77.255.254' -keyout "$oar_api/key.pem" -out "$oar_api/authority.pem" 2>/dev/null || return
    htpasswd -cb "$oar_api/users" "$1" "$2" 2>/dev/null || return
    {
        printf '%s\n' "ServerRoot $oar_api" "ServerName server" "PidFile $oar_api/pid" "ErrorLog $oar_api/error.log" \
            "Mutex file:$oar_api default" "User oar" "Group oar" "Listen 10.77.255.254:6668"
        for module in mpm_event authn_core authn_file authz_core authz_user auth_basic alias env rewrite fcgid ssl; do
            echo "LoadModule ${module}_module $modules/mod_$module.so"
        done
        cat <<END
FcgidIPCDir $oar_api
FcgidProcessTableFile $oar_api/processes
SetEnv OARCONFFILE /etc/oar/oar.conf
SSLEngine on
SSLCertificateFile $oar_api/authority.pem
SSLCertificateKeyFile $oar_api/key.pem
ScriptAlias /oarapi /usr/lib/cgi-bin/oarapi/oarapi.cgi
<Directory /usr/lib/cgi-bin/oarapi>
  Options +ExecCGI
  SetHandler fcgid-script
</Directory>
<Location /oarapi>
  AuthType basic
  AuthName "OAR API"
  AuthUserFile $oar_api/users
  Require valid-user
  RewriteEngine on
  RewriteCond %{REMOTE_USER} (.+)
  RewriteRule .* - [E=X_REMOTE_IDENT:%1]
</Location>
END
    } >"$oar_api/apache.conf"
    chown -R oar: "$oar_api" && chmod 755 "$oar_api"
    bed run apache2 -f "$oar_api/apache.conf" -k start
}

oar_down() {
    [ -z "${oar_api:-}" ] || { kill "$(cat "$oar_api/pid")" && rm -rf "$oar_api"; }
    [ ! -e /run/oar/almighty.pid ] || kill -- "-$(cat /run/oar/almighty.pid)"
    [ ! -e /run/oar/front.pid ] || kill "$(cat /run/oar/front.pid)"
    rm -f /run/oar/*.pid
    bed run pg_ctlcluster 15 main stop -m fast
    [ -z "${postgres_ran:-}" ] || pg_ctlcluster 15 main start # as it was
    cat "$oar_settings" >/etc/oar/oar.conf
    rm -f "$oar_settings"
}
