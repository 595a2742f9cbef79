#!/bin/bash
# What is built is the copy that the run took when it began: of the source without runs, archives and logs. Edited files
# are refused by resume, new ones are not, and a refusal leaves nothing.
. "$(dirname "$0")/../tap.sh"
command -v cc >/dev/null || plan_skip "no C compiler"

# In the folder of its own sources, as one begins: each unit prints what was built, and fails until $scratch/go is there.
mkdir -p "$scratch/triad/.git" "$scratch/triad/data/old" "$scratch/triad/build"
cd "$scratch/triad" || exit
touch .git/config data/notes.log
echo '#define X 1' >'x + 1.h'
printf '#include <stdio.h>\n#include "x + 1.h"\nint main(void) { return printf("x %%d\\n", X) < 0; }\n' >triad.c
printf '#!/bin/sh\ncc -o triad triad.c\n' >build.sh
chmod +x build.sh
cat >triad.yaml <<E2
experiment:
  name: triad
  source: {folder: ., ignore: ['*.log', build/, /data/old]}
  setup: [./build.sh]
  run: [sh, -c, 'test -e $scratch/go && ./triad']
  responses: {x: {pattern: '^x ([0-9]+)'}}
design: {repetitions: 4}
stop-after-failures: 1
probes: none
E2
listing() { "$ASSAY" archive cat "$1" source.tar | tar -tf - | sort | xargs -d '\n'; }
values() { "$ASSAY" archive cat "$1" results/results.csv | awk -F, 'NR > 1 {print $10}' | sort | uniq -c | xargs; }
everything() { find runs | sort; }

check "a dry run says how much the source is, and what is left out" \
    grep -qE "^source       $PWD \(4 files, [0-9]+ B; left out: 3 by 'ignore', 1 of version control\)" <("$ASSAY" run triad.yaml --dry-run)
refuse "a run beside its source that fails" 3 "1 units in a row failed" "$ASSAY" run triad.yaml -q
"$ASSAY" run triad.yaml -q >out.txt 2>err.txt
archive=$(<out.txt)
check "a second one says that the first is left out, and the files that it writes itself" \
    grep -q "source '$PWD': 4 files, [0-9]* B; left out: 1 of runs, 3 by 'ignore', 1 of version control, 2 written by this" \
    <("$ASSAY" archive cat "$archive" logs/engine.log)
is "its archive has what was built" "$(listing "$archive")" "build.sh data/ triad.c triad.yaml x + 1.h"
"$ASSAY" run triad.yaml -q -o elsewhere >"$scratch/out" 2>"$scratch/err"
check "... and the journal the arguments and the environment of its setup" \
    grep -q '"phase":"prepare",.*"arguments":\["sh","-c","./build.sh"\],"environment":\["cpus=[0-9]' <("$ASSAY" archive cat "$archive" journal.jsonl)
is "... and so has one that is made in another folder" "$(listing "$(<"$scratch/out")")" "build.sh data/ err.txt out.txt runs/ triad.c triad.yaml x + 1.h"
rm -rf elsewhere

# What usually holds secrets: by name, and a private key under any name.
mkdir .aws keys
touch .env .netrc .aws/credentials keys/id_rsa
printf -- '-----BEGIN RSA PRIVATE KEY-----\nx\n' >keys/server.txt
"$ASSAY" run triad.yaml -q -o elsewhere >"$scratch/out" 2>"$scratch/err"
is "files that usually hold secrets are not in the archive" "$(listing "$(<"$scratch/out")" | tr ' ' '\n' | grep -E 'aws|env|rc$|keys/.')" ""
check "... and are named" grep -q "5 that may hold secrets (.aws, .env, .netrc, keys/id_rsa, keys/server.txt)" \
    <("$ASSAY" archive cat "$(<"$scratch/out")" logs/engine.log)
rm -rf .aws .env .netrc keys elsewhere

# What makes resume refuse leaves the run as it is.
echo '#define X 2' >'x + 1.h'
before=$(everything)
refuse "a source that was edited is refused" 2 \
    "the experiment's source '$PWD' has changed since the run began: 'x . 1.h' has changed; expected what the run began with" \
    "$ASSAY" resume "$archive" -q
mv 'x + 1.h' y.h
refuse "... and one that lacks a file" 2 "began: 'x . 1.h' is gone; expected" "$ASSAY" resume "$archive" -q
is "... which leaves no part and no archive" "$(everything)" "$before"
cp -r "${archive%.zip}" "$scratch/torn"
echo >>"$scratch/torn/source.tar"
refuse "a copy that was damaged is refused" 5 "source.tar: the source differs from the one that the run began with" \
    "$ASSAY" resume "$scratch/torn" --as-recorded -q
for evil in link ../evil; do
    rm -rf "$scratch/torn"
    cp -r "${archive%.zip}" "$scratch/torn"
    ln -sf /etc link
    touch ../evil
    tar -P -cf "$scratch/torn/source.tar" "$evil"
    sed -i "/\"source\"/,/}/s/\"sha256\": .*/\"sha256\": \"$(sha256sum <"$scratch/torn/source.tar" | cut -c1-64)\"/" "$scratch/torn/inputs.json"
    refuse "... and one that has '$evil', from anybody" 5 "source.tar: '$evil' in it is no file or folder below its top" \
        "$ASSAY" resume "$scratch/torn" --as-recorded -q
    rm link
done
touch "$scratch/go"
archive=$("$ASSAY" resume "$archive" --as-recorded -q 2>"$scratch/err")
is "--as-recorded builds the copy" "$(values "$archive")" "4 1"

# Killed, with its own output, its own runs and new files beside the source.
rm -rf runs "$scratch/go"
echo '#define X 3' >'x + 1.h'
sed -i "s,&& ./triad,|| (touch $scratch/waits; exec sleep 1000); ./triad," triad.yaml
"$ASSAY" run triad.yaml >out.txt 2>err.txt &
eventually test -e "$scratch/waits"
kill -KILL $!
wait $! 2>/dev/null
touch "$scratch/go" new.txt
echo "# more" >>err.txt
archive=$("$ASSAY" resume runs/*/ -q 2>"$scratch/err")
report $? "a run that was killed is resumed, although its folder and other files are new beside its source"
is "... with what it had built" "$(values "${archive:-none}")" "4 3"

# An archive is run again with what it has, wherever that came from, in the same order.
rows() { "$ASSAY" archive cat "$1" results/results.csv | cut -d, -f1-3,"$2"; }
echo '#define X 4' >'x + 1.h'
again=$("$ASSAY" run "$archive" -q -o "$scratch/again" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
is "an archive is run again with its source, not with what that is by now" "$(values "${again:-none}")" "4 3"
mv "$scratch/triad" "$scratch/moved"
cd "$scratch/moved" || exit
"$ASSAY" archive extract "$scratch"/again/*.zip -C "$scratch/extracted" >/dev/null
in_extracted() { (cd "$scratch/extracted" && "$ASSAY" run campaign.yaml "$@"); }
check "... extracted too, when the source is gone" in_extracted -q -o "$scratch/third"
is "... or what its resolved campaign says" \
    "$(values "$(cd "$scratch/extracted" && "$ASSAY" run campaign.resolved.json -q -o "$scratch/resolved" 2>"$scratch/err" || echo none)")" "4 3"
refuse "... which --resume does not continue" 2 "to continue a run that has ended early give 'assay resume' its folder" \
    "$ASSAY" run "$scratch"/again/*.zip --resume -o "$scratch/third"
is "... with one source in all of them" \
    "$(for i in "$scratch"/{moved/runs,again,third}/*/source.tar; do sha256sum <"$i"; done | sort -u | wc -l)" 1
sed -i 's/repetitions: 4/repetitions: 3/' "$scratch/extracted/campaign.yaml"
is "a campaign that was edited there has the same source" \
    "$(values "$(in_extracted -q -o "$scratch/third" 2>"$scratch/err" || echo none)")" "3 3"

mkdir -p "$scratch/experiments/beat"
cat >"$scratch/experiments/beat/experiment.yaml" <<'E2'
name: beat
factors: {n: {type: integer}}
options: {by: {type: integer, default: 1}}
run: ./beat.sh
responses: {y: {pattern: '^y ([0-9]+)'}}
design: {generate: factorial, factors: {n: [1, 2, 3, 4, 5]}}
E2
printf '#!/bin/sh\necho y $((n * by))\n' >"$scratch/experiments/beat/beat.sh"
chmod +x "$scratch/experiments/beat/beat.sh"
printf 'experiment: beat\nprobes: none\n' >beat.yaml
export ASSAY_PATH=$scratch
first=$("$ASSAY" run beat.yaml -q -o "$scratch/first" --set by=2 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
sed -i s/y/z/ "$scratch/experiments/beat/beat.sh"
again=$("$ASSAY" run "${first:-none}" -q -o "$scratch/second" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
is "an archive is run again with its experiment, options, rows and order" "$(rows "${again:-none}" 10,11)" "$(rows "${first:-none}" 10,11)"
again=$("$ASSAY" run "${first:-none}" -q -o "$scratch/second" --set by=3 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
check "... or with another option" awk -F, 'NR > 1 && $11 != 3 * $10 {bad = 1} END {exit bad || NR != 6}' \
    <("$ASSAY" archive cat "${again:-none}" results/results.csv)
again=$("$ASSAY" run "${first%.zip}/campaign.resolved.json" -q -o "$scratch/second" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
is "a resolved campaign is run with its experiment, options, rows and order, too" "$(rows "${again:-none}" 10,11)" "$(rows "${first:-none}" 10,11)"
is "... and is resolved to the same, but for what it is called" \
    "$("$ASSAY" archive cat "${again:-none}" campaign.resolved.json)" "$("$ASSAY" archive cat "${first:-none}" campaign.resolved.json)"

# More than an archive should have.
cd "$scratch/moved" || exit
truncate -s 1200M large
refuse "a source of more than 1 GiB is refused" 2 \
    "'$PWD' has 1.17 GiB in [0-9]+ files, which each archive would have; expected at most 1 GiB \('ignore'" "$ASSAY" run triad.yaml -o none
check "... and nothing is made" test -z "$(ls -A none)"
sed -i "s,'\*.log',large," triad.yaml
check "... unless it is ignored" "$ASSAY" run triad.yaml -q -o none
finish
