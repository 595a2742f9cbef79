#!/bin/bash
# Logging in by ssh: keys, host keys, the configuration, and what is said when it does not work.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../sshd.sh"
try=$ASSAY_BUILD/tests/integration/ssh-try
unset SSH_AUTH_SOCK
export HOME=$scratch/home
mkdir -m 700 "$HOME"

sshd_start node || exit 1
to=127.0.0.1:$port_node
# run WHAT...: ssh-try with the usual options, its output in one place for `refuse`.
run() { timeout 60 "$try" --config none "$@" 2>&1 | tee "$scratch/said" >&2; return "${PIPESTATUS[0]}"; }
plain() { run --known-hosts "$scratch/known" --identity "$scratch/id" "$@"; }
says() { local name=$1 pattern=$2; shift 2; "$@" 2>/dev/null; grep -qE -- "$pattern" "$scratch/said"; local status=$?
         [ $status -eq 0 ] || sed 's/^/# /' "$scratch/said"; report $status "$name"; }

# ---- how a command ends
says "a command runs" "^end $to exit 0$" plain "$to" -- true
says "its exit status comes" "^end $to exit 3$" plain "$to" -- 'exit 3'
says "its signal comes" "^end $to signal TERM$" plain "$to" -- 'kill -TERM $$'
says "a command that is not there" "^end $to exit 127$" plain "$to" -- '/no/such/program 2>/dev/null'
plain --output "$scratch/out" --error "$scratch/err" "$to" -- 'echo out; echo err >&2' 2>/dev/null
check "standard output is apart" test "$(cat "$scratch/out")" = out
check "standard error is apart" test "$(cat "$scratch/err")" = err

# ---- keys
key other; key locked ed25519 secret; key rsa rsa "" 3072; key ecdsa ecdsa
refuse "a wrong key" 1 "EACCES node $to: the login of '$me' was refused: tried $scratch/other; the server takes public key" \
    run --known-hosts "$scratch/known" --identity "$scratch/other" "$to" -- true
says "a wrong key and a good one" "^end $to exit 0$" run --known-hosts "$scratch/known" --identity "$scratch/other" \
    --identity "$scratch/id" "$to" -- true
cat "$scratch/rsa.pub" "$scratch/ecdsa.pub" "$scratch/locked.pub" >>"$scratch/authorized"
says "an RSA key" "^end $to exit 0$" run --known-hosts "$scratch/known" --identity "$scratch/rsa" "$to" -- true
says "an ECDSA key" "^end $to exit 0$" run --known-hosts "$scratch/known" --identity "$scratch/ecdsa" "$to" -- true
refuse "no key at all" 1 "tried no key, since none was found; the server takes public key" run --known-hosts "$scratch/known" "$to" -- true
refuse "an encrypted key" 1 "needs a passphrase and was not tried: $scratch/locked \(give it to ssh-agent" \
    run --known-hosts "$scratch/known" --identity "$scratch/locked" "$to" -- true
refuse "a key that is not there" 2 "cannot read the key '$scratch/none': No such file" \
    run --known-hosts "$scratch/known" --identity "$scratch/none" "$to" -- true
refuse "a key that is none" 2 "'$scratch/known' is not a private key" run --identity "$scratch/known" "$to" -- true
refuse "another user" 1 "the login of 'nobody-here' was refused: tried $scratch/id" plain --user nobody-here "$to" -- true
says "the user before the host" "the login of 'someone' was refused" plain --user "$me" "someone@$to" -- true
mkdir -m 700 "$HOME/.ssh"
cp "$scratch/id" "$HOME/.ssh/id_ed25519"
says "a key in its usual place" "^end $to exit 0$" run --known-hosts "$scratch/known" "$to" -- true
rm "$HOME/.ssh/id_ed25519"

eval "$(ssh-agent -a "$scratch/agent.sock")" >/dev/null
refuse "an agent without keys" 1 "tried the keys of ssh-agent;" run --known-hosts "$scratch/known" "$to" -- true
ssh-add -q "$scratch/other" "$scratch/id" 2>/dev/null
says "ssh-agent's keys" "^end $to exit 0$" run --known-hosts "$scratch/known" "$to" -- true
SSH_ASKPASS_REQUIRE=force SSH_ASKPASS=$scratch/ask DISPLAY=none
printf '#!/bin/sh\necho secret\n' >"$scratch/ask"; chmod +x "$scratch/ask"
export SSH_ASKPASS_REQUIRE SSH_ASKPASS DISPLAY
ssh-add -q -D 2>/dev/null; ssh-add -q "$scratch/locked" 2>/dev/null
says "an encrypted key that ssh-agent has" "^end $to exit 0$" \
    run --known-hosts "$scratch/known" --identity "$scratch/locked" "$to" -- true
ssh-add -q -D 2>/dev/null; ssh-add -q "$scratch/id" 2>/dev/null
says "many by ssh-agent" "^end $to exit 0$" run --known-hosts "$scratch/known" --copies 20 "$to" -- true
check "all of them" test "$(grep -c "^end $to exit 0$" "$scratch/said")" -eq 20

# ---- which of ssh-agent's keys: the server ends the connection after two
sshd_start two_tries MaxAuthTries=2
two=127.0.0.1:$port_two_tries
ssh-add -q -D 2>/dev/null
for n in 1 2 3; do key "extra$n"; ssh-add -q "$scratch/extra$n" 2>/dev/null; done
ssh-add -q "$scratch/id" 2>/dev/null
mkdir "$scratch/public"; cp "$scratch/id.pub" "$scratch/public/only.pub"
named() { printf 'Host 127.0.0.1\n IdentityFile %s\n IdentitiesOnly %s\n' "$1" "$2" >"$scratch/agent-config"; }
says "of many keys the one whose public part is an IdentityFile" "^end $two exit 0$" \
    eval 'named "$scratch/public/only.pub" no; run --config "$scratch/agent-config" --known-hosts "$scratch/known" "$two" -- true'
says "and no other with IdentitiesOnly" "^end $two exit 0$" \
    eval 'named "$scratch/public/only" yes; run --config "$scratch/agent-config" --known-hosts "$scratch/known" "$two" -- true'
says "a public part as --identity" "^end $two exit 0$" \
    run --known-hosts "$scratch/known" --identity "$scratch/public/only.pub" "$two" -- true
named "$scratch/other.pub" yes
refuse "a named key that ssh-agent lacks" 1 "was refused: tried the keys of ssh-agent; the server takes public key" \
    run --config "$scratch/agent-config" --known-hosts "$scratch/known" "$two" -- true
key authority; key certified; key certified_rsa rsa "" 3072
for name in certified certified_rsa; do ssh-keygen -q -s "$scratch/authority" -I "$name" -n "$me" "$scratch/$name.pub"; done
ssh-add -q -D 2>/dev/null; ssh-add -q "$scratch/certified" "$scratch/id" 2>/dev/null
says "an agent that has a certificate, which libssh does not know" "^end $to exit 0$" run --known-hosts "$scratch/known" "$to" -- true
kill "$SSH_AGENT_PID"; unset SSH_AUTH_SOCK
says "an agent that has gone" "^end $to exit 0$" env SSH_AUTH_SOCK="$scratch/agent.sock" timeout 60 bash -c \
    "'$try' --config none --known-hosts '$scratch/known' --identity '$scratch/id' '$to' -- true >'$scratch/said'"
sshd_start strict MaxAuthTries=2
refuse "too many keys for the server" 1 "EACCES .*was refused, and the server ended the connection \(2:Too many auth" \
    run --known-hosts "$scratch/known" --identity "$scratch/other" --identity "$scratch/host" --identity "$scratch/id" \
    "127.0.0.1:$port_strict" -- true

# ---- certificates of users
sshd_start trusting TrustedUserCAKeys="$scratch/authority.pub"
trusting=127.0.0.1:$port_trusting
for name in certified certified_rsa; do
    says "a certificate beside its key: $name" "^end $trusting exit 0$" \
        run --known-hosts "$scratch/known" --identity "$scratch/$name" "$trusting" -- true
done
mkdir "$scratch/with blanks"
mv "$scratch/certified-cert.pub" "$scratch/with blanks/mine.pub"; cp "$scratch/known" "$scratch/with blanks/known hosts"
printf 'Host 127.0.0.1\n IdentityFile %s\n CertificateFile "%s"\n UserKnownHostsFile /none "%s"\n' "$scratch/certified" \
    "$scratch/with blanks/mine.pub" "$scratch/with blanks/known hosts" >"$scratch/certified-config"
says "a CertificateFile and known hosts, whose paths have blanks" "^end $trusting exit 0$" run --config "$scratch/certified-config" "$trusting" -- true
sed -i "s,$scratch/certified\$,$scratch/certified.pub," "$scratch/certified-config"
refuse "a certificate of a key that is not there" 1 "not used: $scratch/with blanks/mine.pub, $scratch/certified.pub \(.*launcher: \{attach: \[ssh," \
    run --config "$scratch/certified-config" "$trusting" -- true

# ---- an agent that asks its user before it signs, and a user who does not answer; and one that is stopped
mkfifo "$scratch/never"
printf '#!/bin/sh\necho $$ >>"$ASKED"\nexec cat %s\n' "$scratch/never" >"$scratch/ask"
printf 'Host keyed\nHostName 127.0.0.1\nPort %s\nUser %s\nIdentityAgent none\nIdentityFile %s\n' "$port_node" "$me" "$scratch/id" >"$scratch/keyed"
unwilling() { # a new agent, which has asked nobody yet; whom one before it had asked may say so late
    agents=$((${agents:-0} + 1))
    export ASKED=$scratch/asked.$agents
    eval "$(ssh-agent)" >/dev/null
    ssh-add -q -c "$scratch/id" 2>/dev/null
}
stop_unwilling() { kill -KILL "$SSH_AGENT_PID"; kill "$(tail -n 1 "$ASKED")"; rm -f "$SSH_AUTH_SOCK"; unset SSH_AUTH_SOCK; }
quickly() { # quickly FROM COMMAND...: runs it, and time passes quickly for it once FROM succeeds
    local from=$1 status; shift
    rm -f "$scratch/over"
    (move_clock; eventually $from; hurry test -e "$scratch/over") &
    ASSAY_TEST_CLOCK=$scratch/clock "$@"; status=$?
    touch "$scratch/over"; wait $!
    return $status
}
unwilling
refuse "an agent that does not sign" 1 "ETIMEDOUT node $to: ssh-agent did not answer within 60 s" \
    quickly "test -s $ASKED" run --known-hosts "$scratch/known" --timeout 60 --copies 3 "$to" -- true
"$try" --config "$scratch/keyed" --known-hosts "$scratch/known" --timeout 1000000 --copies 20 "$to" keyed -- true >"$scratch/said" 2>&1 &
all_others() { cat "$scratch/said"; [ "$(grep -c '^end keyed exit 0$' "$scratch/said")" -eq 20 ]; }
check "keeps no others from logging in" eventually all_others
kill $!; wait $! 2>/dev/null
stop_unwilling
for signal in INT TERM; do
    unwilling
    timeout --foreground 120 "$ASSAY" nodes run -w "$to" -F none --known-hosts "$scratch/known" --timeout 1h -- true >"$scratch/said" 2>&1 &
    check "it is waited for" eventually test -s "$ASKED"
    kill -$signal $!; wait $!
    is "and SIG$signal ends that" $? 4
    stop_unwilling
done
unwilling
kill -STOP "$SSH_AGENT_PID"
refuse "an agent that does not even list its keys" 1 "ETIMEDOUT node $to: ssh-agent did not answer within 100 s" \
    quickly true run --known-hosts "$scratch/known" --timeout 100 --copies 3 "$to" -- true
kill -KILL "$SSH_AGENT_PID"; unset SSH_AUTH_SOCK

# ---- host keys
logins=$(grep -c Accepted "$scratch/node.log")
fingerprint=$(ssh-keygen -lf "$scratch/host.pub" | cut -d' ' -f2)
refuse "an unknown host key, with the ways out" 1 "EKEYREJECTED node $to: its host key is not known \(ssh-ed25519 ${fingerprint//+/.}, expected as '\[127.0.0.1\]:$port_node'.*add what ssh-keyscan prints .*'host-keys: accept-new' in the campaign's testbed, --accept-new of 'assay nodes'" \
    run --known-hosts /dev/null --identity "$scratch/id" "$to" -- true
check "where no login was tried" test "$(grep -c Accepted "$scratch/node.log")" -eq "$logins"
cp "$scratch/known" "$scratch/hashed"; ssh-keygen -q -H -f "$scratch/hashed" >/dev/null 2>&1
check "the names are hashed" grep -q '^|1|' "$scratch/hashed"
says "a hashed name" "^end $to exit 0$" run --known-hosts "$scratch/hashed" --identity "$scratch/id" "$to" -- true
{ echo "# of yesterday"; echo "[127.0.0.1]:$port_node $(cut -d' ' -f1,2 "$scratch/other.pub")"; } >"$scratch/changed"
refuse "a changed host key" 1 "EKEYREJECTED .*has changed: it shows ssh-ed25519 ${fingerprint//+/.}, and '$scratch/changed' line 2 has another" \
    run --known-hosts "$scratch/changed" --identity "$scratch/id" "$to" -- true
refuse "a changed one where new ones are accepted" 1 "EKEYREJECTED .*has changed" \
    run --known-hosts "$scratch/changed" --accepted "$scratch/accepted" --identity "$scratch/id" "$to" -- true
check "nothing was accepted" test ! -s "$scratch/accepted"
says "a new one is accepted" "^end $to exit 0$" \
    run --known-hosts /dev/null --accepted "$scratch/accepted" --identity "$scratch/id" --copies 10 "$to" -- true
check "once" test "$(cat "$scratch/accepted")" = "$(known node)"
says "and then expected" "^end $to exit 0$" \
    run --known-hosts /dev/null --accepted "$scratch/accepted" --identity "$scratch/id" "$to" -- true
check "still once" test "$(wc -l <"$scratch/accepted")" -eq 1
refuse "where they cannot be noted" 1 "ENOENT node $to: cannot open '$scratch/none/accepted' to note a host key: No such file" \
    run --known-hosts /dev/null --accepted "$scratch/none/accepted" --identity "$scratch/id" "$to" -- true
printf '%s' "[127.0.0.1]:$port_node $(cut -d' ' -f1,2 "$scratch/other.pub")" >"$scratch/accepted"
refuse "an accepted one that changes" 1 "has changed: .*'$scratch/accepted' line 1" \
    run --known-hosts /dev/null --accepted "$scratch/accepted" --identity "$scratch/id" "$to" -- true
{ echo "@revoked * $(cut -d' ' -f1,2 "$scratch/host.pub")"; cat "$scratch/known"; } >"$scratch/revoked"
refuse "a revoked one" 1 "its host key is revoked: .*'$scratch/revoked' line 1 forbids" \
    run --known-hosts "$scratch/revoked" --identity "$scratch/id" "$to" -- true
cut -d' ' -f1,2 "$scratch/host.pub" >"$scratch/revoked-keys"
printf 'Host 127.*\n  RevokedHostKeys %s\n' "$scratch/revoked-keys" >"$scratch/revoked-config"
refuse "one of RevokedHostKeys" 1 "its host key is revoked: .*'$scratch/revoked-keys' line 1 forbids" \
    run --config "$scratch/revoked-config" --known-hosts "$scratch/known" --identity "$scratch/id" "$to" -- true
ssh-keygen -q -k -f "$scratch/revoked-keys" "$scratch/other.pub"
refuse "a binary list of revoked keys" 1 "cannot be checked: '$scratch/revoked-keys' .*is not read; expected public keys, one a line, .*launcher: \{attach: \[ssh" \
    run --config "$scratch/revoked-config" --known-hosts "$scratch/known" --identity "$scratch/id" "$to" -- true
cat >"$scratch/torn-config" <<END
Host 127.0.0.1
    UserKnownHostsFile $scratch/torn
END
{ cat "$scratch/changed"; head -c $((16 << 20)) /dev/zero; } >"$scratch/torn"
rm -f "$scratch/accepted"
refuse "a file of known hosts that cannot be read" 1 \
    "EKEYREJECTED node $to: its host key cannot be checked: '$scratch/torn' might know it and cannot be read: " \
    run --config "$scratch/torn-config" --accepted "$scratch/accepted" --identity "$scratch/id" "$to" -- true
check "where nothing is accepted" test ! -s "$scratch/accepted"
{ echo "* ssh-future AAAA"; echo "garbage"; echo "*,!127.* x y"; cat "$scratch/known"; } >"$scratch/odd"
says "lines of other times" "^end $to exit 0$" run --known-hosts "$scratch/odd" --identity "$scratch/id" "$to" -- true
echo "@cert-authority 127.*,[127.*]:* $(cut -d' ' -f1,2 "$scratch/other.pub")" >"$scratch/authorities"
refuse "an authority of host certificates" 1 "'$scratch/authorities' line 1 has a @cert-authority for it, and host certificates are not followed; .*launcher: \{attach" \
    run --known-hosts "$scratch/authorities" --identity "$scratch/id" "$to" -- true
echo "127.0.0.1 $(cut -d' ' -f1,2 "$scratch/host.pub")" >"$scratch/portless"
says "a line without a port" "^end $to exit 0$" run --known-hosts "$scratch/portless" --identity "$scratch/id" "$to" -- true
echo "127.0.0.1 $(cut -d' ' -f1,2 "$scratch/other.pub")" >"$scratch/portless"
refuse "of another key: another server" 1 "its host key is not known" run --known-hosts "$scratch/portless" --identity "$scratch/id" "$to" -- true
key host_rsa rsa "" 3072
sshd_start two HostKey="$scratch/host_rsa"
echo "[127.0.0.1]:$port_two $(cut -d' ' -f1,2 "$scratch/host_rsa.pub")" >"$scratch/one"
says "of two host keys, the one that is known" "^end 127.0.0.1:$port_two exit 0$" \
    run --known-hosts "$scratch/one" --identity "$scratch/id" "127.0.0.1:$port_two" -- true
refuse "known hosts that are not there" 2 "cannot open '$scratch/none'" run --known-hosts "$scratch/none" "$to" -- true

# ---- the configuration
cat >"$scratch/config" <<END
Host short
    HostName 127.0.0.1
    Port $port_node
    User $me
    IdentityFile $scratch/id
    IdentitiesOnly yes
    UserKnownHostsFile $scratch/alias
    HostKeyAlias kept
Host shell
    ProxyCommand nc %h %p
Host silent
    HostName 127.0.0.1
    Port 1
    ConnectTimeout 1
END
echo "kept $(cut -d' ' -f1,2 "$scratch/host.pub")" >"$scratch/alias"
says "all of it from the configuration" "^end short exit 0$" run --config "$scratch/config" short -- true
refuse "a ProxyCommand" 2 "node shell: 'shell' has a ProxyCommand .*'nc %h %p'.* expected ProxyJump" \
    run --config "$scratch/config" shell -- true

# ---- other servers
sshd_start old KexAlgorithms=ecdh-sha2-nistp256 Ciphers=chacha20-poly1305@openssh.com
says "another key exchange and cipher" "^end 127.0.0.1:$port_old exit 0$" plain "127.0.0.1:$port_old" -- true
sshd_start foreign Ciphers=aes128-cbc
refuse "nothing in common" 1 "EPROTO .*the key exchange failed: .*aes128-cbc" plain "127.0.0.1:$port_foreign" -- true
sshd_start twofold AuthenticationMethods=publickey,password
refuse "a second proof" 1 "EACCES .*was refused \(the key is not enough: the server wants a second proof\)" \
    plain "127.0.0.1:$port_twofold" -- true

# ---- no connection
refuse "nobody listens" 1 "ECONNREFUSED node 127.0.0.1:1: cannot connect to 127.0.0.1 port 1: Connection refused" plain 127.0.0.1:1 -- true
refuse "no such name" 1 "ENOENT node no-such-node.invalid: " plain no-such-node.invalid -- true
refuse "a bad destination" 2 "node -oProxyCommand=x" plain -- -oProxyCommand=x -- true
kill -STOP "$(cat "$scratch/two.pid")"
refuse "a server that says nothing" 1 "ETIMEDOUT .*accepted the connection and sent nothing within 2 s" \
    plain --timeout 2 "127.0.0.1:$port_two" -- true
kill -CONT "$(cat "$scratch/two.pid")"
# ---- what is no ssh server, and what is no option
perl -MIO::Socket::INET -e '$| = 1; $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1") or die; print $s->sockport, "\n";
    while ($c = $s->accept) { print $c "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"; close $c }' >"$scratch/web" &
web=$!
eventually test -s "$scratch/web"
refuse "a web server" 1 "before the login: .*a server of another kind does too: is the port right\?$" plain "127.0.0.1:$(head -1 "$scratch/web")" -- true
check "... not 'Success'" test -z "$(grep Success "$scratch/said")"
kill $web
refuse "a user that is an option" 2 "user '-oX@node': .* a part begins with '-'" plain --user -oX "$to" -- true
refuse "a node with a bad port" 2 "'n1:99999' is not a destination: the port is not one of 1 to 65535" "$ASSAY" nodes run -w n1:99999 -F none -- true
refuse "a gateway with a bad port" 2 "gateways 'a,b:99999': 'b:99999' is not a destination: the port" plain --jump a,b:99999 "$to" -- true
sshd_start busy MaxStartups=2:100:2
plain --copies 20 "127.0.0.1:$port_busy" -- true 2>/dev/null
check "too many at once: some get through" grep -q '^end .* exit 0$' "$scratch/said"
check "too many at once: the others are told why" grep -qE '^failed .* ECONNRESET .*before the login: .*MaxStartups' "$scratch/said"
check "too many at once: nobody is lost" test "$(grep -cE '^(end|failed) ' "$scratch/said")" -eq 20
finish
