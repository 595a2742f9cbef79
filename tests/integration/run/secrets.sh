#!/bin/bash
# A run is not sealed with a private key or token in what its experiment wrote: the file and the line are named, nothing
# is lost, and it is sealed when that is gone. What is in the campaign or a source is found before anything is measured.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
token=ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3x
cat >leaky.yaml <<'Y'
experiment:
  name: leaky
  run: [sh, -c, 'echo "y 5"; echo; echo "using $(cat '@'/token)"']
  responses: {y: {pattern: '^y ([0-9]+)'}}
design: {repetitions: 2}
probes: none
Y
sed -i "s|'@'|$scratch|" leaky.yaml
echo $token >token
file="results/raw/[12]-$(uname -n)-all.out"
refuse "a token in the output of a unit is not sealed" 1 \
    "assay: the run could not be sealed and stays in '.*'; nothing is lost, and 'assay resume' seals the run when the secret is gone: '$file' has what looks like a token on line 3; remove it there$" \
    "$ASSAY" run leaky.yaml -q
check "... so there is no archive" test -z "$(find runs -name '*.zip*')"
is "... the run's folder has the results" "$(cut -d, -f10 runs/*/results/results.csv | xargs)" "y 5 5"
refuse "... it can be tried again, to the same end" 1 "a token on line 3" "$ASSAY" resume runs/*/ -q
sed -i "s/$token/(a token)/" runs/*/results/raw/*.out
check "... and is sealed when the token is gone" "$ASSAY" resume runs/*/ -q
archive=$(echo runs/*.zip)
is "... with the results that there were" "$("$ASSAY" archive cat "$archive" results/results.csv | cut -d, -f10 | xargs)" "y 5 5"
is "... as a run that is complete" "$("$ASSAY" archive verify "$archive" >err && "$ASSAY" archive cat "$archive" run.json | grep -m 1 -c '"status": *"completed"')" 1

echo "description: $token" >>leaky.yaml
refuse "a token in a campaign is found before anything is measured" 2 "'leaky.yaml' has what looks like a token on line 7; remove it there" \
    "$ASSAY" run leaky.yaml -q -o none
check "... and leaves nothing" test -z "$(ls -A none)"
sed -i '$d; s/^  run: .*/  source: {folder: source}\n  run: echo y 5/' leaky.yaml
mkdir source
echo 1 >source/value
printf 'a\n-----BEGIN EC PRIVATE KEY-----\nMHc\n' >source/notes.txt
"$ASSAY" run leaky.yaml -q -o sources >out 2>err
is "a source file with a key in it is left out" "$("$ASSAY" archive cat "$(<out)" source.tar | tar tf - | xargs)" value
check "... and named" grep -q "1 that may hold secrets (notes.txt)" sources/*/logs/engine.log
mkdir kept
printf 'name: kept\nrun: echo y 5\nresponses: {y: {pattern: "^y ([0-9]+)"}}\n' >kept/experiment.yaml
printf 'experiment: ./kept\ndesign: {repetitions: 2}\nprobes: none\n' >kept.yaml
echo "key hvs.CAESIJ1a2b3c4d5e6f7g8h9iAbCd" >kept/vault
touch kept/id_rsa
"$ASSAY" run kept.yaml -o kept-runs >out 2>err
check "files that an experiment's copy lacks are named on the terminal" \
    contains err "left out of the archive, and of what nodes get, because they may hold secrets: \(experiment/id_rsa, experiment/vault\)$"
check "... and in README.md of the archive" \
    contains <("$ASSAY" archive cat kept-runs/*.zip README.md) '^Left out, because they may hold secrets: `experiment/id_rsa`, `experiment/vault`$'
echo "# password=hunter22" >>kept/experiment.yaml
refuse "a password in the experiment itself is found before anything is measured" 2 \
    "kept/experiment.yaml' has what looks like a password on line 4; remove it there" "$ASSAY" run kept.yaml -q -o none

# For strangers.
mkdir -p home/alicia && cd home/alicia || exit 1
cat >open.yaml <<'Y'
experiment:
  name: open
  run: [sh, -c, 'echo "y 5"; echo "alicia at 10.1.2.3"']
  responses: {y: {pattern: '^y ([0-9]+)'}}
design: {repetitions: 2}
probes: none
Y
archive=$(SUDO_USER=alicia "$ASSAY" run open.yaml -q --redact 2>err) || sed 's/^/# /' err
"$ASSAY" archive extract "$archive" -C "$scratch/open" >/dev/null
is "--redact: the name of the user is nowhere in the archive" "$(grep -rl alicia "$scratch/open")" ""
is "... nor are addresses" "$(cat "$scratch"/open/results/raw/1-*.out)" "$(printf 'y 5\n[user] at [redacted]')"
check "... it verifies" "$ASSAY" archive verify "$archive"
check "... its journal is whole" "$ASSAY" status "$archive"
check "... and it is run again" "$ASSAY" run "$archive" -q -o again
sed 's/^probes/testbed: {hosts: [localhost], user: [user]}\n&/' "$scratch/open/campaign.yaml" >"$scratch/open/edited.yaml"
refuse "what a redacted archive leaves out has to be written before its campaign is run" 2 \
    "'user' is a sequence, expected text; '\[user\]' and '\[redacted\]' stand where a redacted archive leaves out names" \
    "$ASSAY" run "$scratch/open/edited.yaml" -q -o none
sed -i 's/user: .user./user: "[user]"/' "$scratch/open/edited.yaml"
refuse "... also as a text" 2 "'\[user\]@node' is not a destination" "$ASSAY" run "$scratch/open/edited.yaml" -q -o none
check "the run's folder has everything" grep -q 'alicia at 10.1.2.3' "${archive%.zip}"/results/raw/1-*.out
is "... and 'redact: people' says that the next part is redacted, too" "$(grep -o '"redact": *"[a-z]*"' "${archive%.zip}/campaign.resolved.json")" '"redact": "people"'

# What names an archive, a node or a member stays, and the descriptions of the archive have no more than its files.
sed -i -e '1i description: measured by alicia' -e 's/name: open/name: alicia-open/' open.yaml
cat >hosted.sh <<'S'
hostname alicia-pc && SUDO_USER=alicia exec "$ASSAY" run open.yaml -q --redact -o hosted
S
if unshare -u true 2>/dev/null; then
    archive=$(unshare -u bash hosted.sh 2>err) || sed 's/^/# /' err
    check "the archive of a node whose name has that of the user verifies" "$ASSAY" archive verify "$archive"
    "$ASSAY" archive extract "$archive" -C "$scratch/hosted" >/dev/null
    is "... the name of the user is elsewhere nowhere" "$(grep -rh alicia "$scratch/hosted" | sed 's/alicia-\(pc\|open\)//g' | grep alicia)" ""
    is "... nor where the archive is described" "$(grep -c 'measured by \[user\]' "$scratch/hosted/README.md")" 1
    check "... and it is run again" "$ASSAY" run "$archive" -q -o again
else
    skip "the archive of a node whose name has that of the user verifies" "no other host name without root"
fi
finish
