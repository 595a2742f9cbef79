#!/bin/bash
# Campaigns on `testbed: oar`, by a real OAR whose nodes are those of a test bed.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
. "$ASSAY_SOURCE/tests/integration/oar-bed.sh"
. "$ASSAY_SOURCE/tests/faults/killed-runs.sh"
id oar >/dev/null 2>&1 || plan_skip "no OAR (oar-server-pgsql, oar-user-pgsql, oar-node, libdbd-pg-perl, postgresql)"
user=assay-oar-test # OAR lends nothing to root
home=$(mktemp -d /var/tmp/assay-oar-XXXXXX)
useradd -M -d "$home" "$user" 2>/dev/null; usermod -p '*' "$user"
cleanup() { [ -z "${oar_settings:-}" ] || oar_down; userdel "$user"; rm -rf "$home"; }
bed up 4 || plan_skip "no test bed"
bed can nodes || plan_skip "nodes of their own need root"
oar_up || plan_skip "no OAR"
cd "$scratch" || exit
write_tick "$scratch"
mkdir ssh && cp "$BED"/{id_ed25519,known_hosts,ssh_config} ssh && sed -i "s|$BED|$scratch/ssh|g" ssh/ssh_config
as_user() { chown -R "$user" "$scratch" && bed run su "$user" -s /bin/sh -c "cd $scratch && ASSAY_PATH=$scratch HOME=$home $*"; }
jobs_over() { ! bed run oarstat -u "$user" | grep -qE '^[0-9]+ +[RWLS] '; }

tick_campaign "$scratch/lent" 20 0 "{oar: {cluster: bed, nodes: 2, walltime: 10min}, ssh-config: $scratch/ssh/ssh_config}"
check "a campaign runs on nodes that OAR lends" as_user "$ASSAY" run lent.yaml -o lent
is "each unit on each node" "$("$ASSAY" archive cat lent/*.zip results/results.csv | tail -n +2 | wc -l)" 40
check "when the job ends is the run's deadline" grep -q '"source":"testbed"' lent/*/journal.jsonl
check "and gives them back" eventually jobs_over

tick_campaign "$scratch/many" 4 0 "{oar: {cluster: bed, nodes: 40, walltime: 10min}, ssh-config: $scratch/ssh/ssh_config}"
refuse "more nodes than there are, in OAR's words" 1 'oarsub ended with exit status [0-9]+: .' as_user "$ASSAY" run many.yaml -o many
tick_campaign "$scratch/raw" 4 0 "{oar: {resources: '/nodes=1,walltime=0:05'}, ssh-config: $scratch/ssh/ssh_config}"
check "oarsub's own words" as_user "$ASSAY" run raw.yaml -o raw
check "and gives them back" eventually jobs_over
finish
