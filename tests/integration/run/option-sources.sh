#!/bin/bash
# Sources that options name: folders, files, git repositories, with a patch; the archive has them, and is run again from
# them when they are gone.
. "$(dirname "$0")/../tap.sh"
command -v git >/dev/null || plan_skip "no git"
mkdir -p "$scratch/experiments/built" "$scratch/code/src" "$scratch/code/.git" "$scratch/installed/bin"
cd "$scratch" || exit 1
export ASSAY_PATH=$scratch
git config --file "$scratch/gitconfig" user.name t
git config --file "$scratch/gitconfig" user.email t@localhost
export GIT_CONFIG_GLOBAL=$scratch/gitconfig
rm -r code/.git
cat >experiments/built/experiment.yaml <<'Y'
name: built
options:
  code: {type: text, default: none}
  change: {type: text, default: none}
sources: [code, change]
setup:
  - [sh, -c, 'rm -rf tree; if [ -d "$code" ]; then cp -R "$code" tree; elif [ -f "$code" ]; then mkdir tree && tar xf "$code" -C tree --strip-components=1; else mkdir -p tree/src; echo 0 >tree/src/value; fi; [ "$change" = none ] || patch -d tree -p1 <"$change"']
run: [sh, -c, '[ ! -d tree/src ] || [ ! -e tree/src/show ] || tree/src/show; echo "value $(cat tree/src/value)"']
responses: {value: {pattern: '^value ([0-9]+)'}}
Y
printf 'experiment: built\nprobes: none\ndesign: {repetitions: 1}\n' >built.yaml
echo 1 >code/src/value
printf '#!/bin/sh\necho shown\n' >code/src/show
chmod +x code/src/show
echo x >code/.env
printf -- '--- a/src/value\n+++ b/src/value\n@@ -1 +1 @@\n-1\n+7\n' >change.diff
run() { archive=$("$ASSAY" run "$@" -q -o runs 2>err) || sed 's/^/# /' err; }
value() { "$ASSAY" archive cat "${archive:-none}" results/results.csv | awk -F, 'NR > 1 { print $10 }'; }
source_of() { "$ASSAY" archive cat "${archive:-none}" software/sources.json | tr -d ' \n' | grep -o "\"$1\":{\"written.*" | grep -o "\"$2\":[^,}]*" | head -n 1 | tr -d '"' | cut -d: -f2-; }
has() { "$ASSAY" archive list "${archive:-none}" | awk '{ print $NF }' | grep "^$1" | xargs; }

run built.yaml
is "the default is no source" "$(value) $(has inputs/)" "0 "
run built.yaml --set code=code
is "a folder is built from its copy" "$(value) $(has inputs/code/)" "1 inputs/code/src/show inputs/code/src/value"
is "... which is recorded, with the hash of its listing" "$(source_of code written) $(source_of code copy) $(source_of code sha256)" \
    "code inputs/code $("$ASSAY" archive cat "$archive" software/code-sha256.txt | sha256sum | cut -c1-64)"
check "... and the listing is one of sha256sum's" sh -c "cd code && '$ASSAY' archive cat '$archive' software/code-sha256.txt | sha256sum -c --quiet"
first=$archive

tar czf code.tar.gz code
run built.yaml --set code=code.tar.gz --set change=change.diff
is "a tar archive is copied as it is, and patched" "$(value) $(has inputs/)" "7 inputs/change/change.diff inputs/code/code.tar.gz"
is "... with its own hash" "$(source_of code sha256)" "$(sha256sum <code.tar.gz | cut -c1-64)"
patched=$archive

(cd code && git init -q . && git add src && git commit -qm one && git tag v1 && echo 2 >src/value && git commit -qam two && echo 3 >src/value)
run built.yaml --set "code=git+file://$scratch/code@v1"
is "a git repository is cloned at a tag" "$(value) $(source_of code commit) $(source_of code at)" "1 $(git -C code rev-parse v1) v1"
is "... by a node" "$(source_of code node) $(source_of code url)" "$(uname -n) file://$scratch/code"
cloned=$archive
run built.yaml --set code=code
is "a checkout that was edited is copied as it is, with its commit, and called dirty" \
    "$(value) $(source_of code commit) $(source_of code dirty)" "3 $(git -C code rev-parse HEAD) true"
cat >cloned.yaml <<Y
experiment:
  name: cloned
  source: {git: 'file://$scratch/code', at: v1}
  run: cat src/value
  responses: {value: {pattern: '^([0-9]+)'}}
probes: none
design: {repetitions: 1}
Y
run cloned.yaml
is "the commit of an experiment's source is in the archive" "$(value) $(source_of source commit) $("$ASSAY" archive cat "$archive" source.tar | tar tf - | xargs)" \
    "1 $(git -C code rev-parse v1) src/ src/show src/value"
of_experiment=$archive

# Elsewhere: nothing of it is left.
rm -rf code code.tar.gz change.diff experiments
for run in "$first" "$patched" "$cloned" "$of_experiment"; do
    archive=$run
    before=$(value) record=$("$ASSAY" archive cat "$archive" software/sources.json)
    run "$run"
    check "an archive is run again, and its programs are" test "$run" = "$of_experiment" -o "$("$ASSAY" archive cat "$archive" "results/raw/1-$(uname -n)-all.out" | head -n 1)" = shown
    is "... with what it has, which the new one says, too" \
        "$(value) $("$ASSAY" archive cat "$archive" software/sources.json)" "$before $record"
    [ "$run" != "$first" ] || is "... with its listing" "$(has software/code)" software/code-sha256.txt
done

# Where it is not kept.
"$ASSAY" archive extract "$first" -C extracted >/dev/null
mkdir -p code/src experiments/built
cp extracted/experiment/experiment.yaml experiments/built/
head -c 5000000 /dev/zero >code/src/large
echo 5 >code/src/value
echo 'provenance: lean' >>built.yaml
run built.yaml --set code=code
is "a large source is built, and the archive has its hashes only" "$(value) $(has inputs/) $(has software/code)" "5  software/code-sha256.txt"
is "... as it says" "$(source_of code copy) $(source_of code bytes)" " 5000002"
refuse "... so that it is not run again without" 2 "the archive has no copy of the source 'code', only its hashes in software/sources.json; give the source with --set code=PATH" \
    "$ASSAY" run "$archive" -q -o runs
run "$archive" --set "code=$PWD/code"
is "... but with it" "$(value)" 5
refuse "a token in an address is refused" 2 "option 'code' has a password or token, which the archive would show" "$ASSAY" run built.yaml --set code=git+https://me:secret@example.org/x.git
run built.yaml --set code=/nowhere/at-all
is "a path that is nowhere is left to the experiment" "$(value)" 0
finish
