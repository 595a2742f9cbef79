#!/bin/bash
# A user's own experiment in one short file: packages, a clone or a folder, a build, a benchmark, patterns.
. "$(dirname "$0")/../tap.sh"
command -v cc >/dev/null || plan_skip "no C compiler"
command -v git >/dev/null || plan_skip "no git"
command -v make >/dev/null || plan_skip "no make"

for example in croaring croaring-oar; do
    lines=$(grep -vcE '^ *(#|$)' "$ASSAY_SOURCE/examples/$example.yaml")
    check "examples/$example.yaml has at most 14 lines" test "$lines" -le 14
    check "... and is a valid campaign" "$ASSAY" run "$ASSAY_SOURCE/examples/$example.yaml" --dry-run
done

# A benchmark in a repository of our own: it sums numbers, and prints what it took, as CRoaring's prints cycles.
mkdir -p "$scratch/bench/data"
cat >"$scratch/bench/bench.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
    FILE *f = fopen(argv[1], "r");
    const char *scale = getenv("scale");
    long rounds = scale ? atol(scale) : 1, n, sum = 0;
    if (argc < 2 || !f) return 3;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    while (fscanf(f, "%ld", &n) == 1) for (long i = 0; i < rounds; i++) sum += n * i;
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("loaded\n 3 sums took %ld cycles\nsum %ld\n", (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec + 1, sum);
    return 0;
}
C
printf 'bench: bench.c\n\tcc -O1 -o bench bench.c\n' >"$scratch/bench/Makefile"
printf '1\n2\n3\n' >"$scratch/bench/data/numbers"
(cd "$scratch/bench" && git init -q . && git add -A && git -c user.name=t -c user.email=t@localhost commit -qm one &&
    git tag v1 && echo '#error newer than the tag' >>bench.c && git -c user.name=t -c user.email=t@localhost commit -qam two)

cat >"$scratch/git.yaml" <<E2
experiment:
  name: sums
  packages: [make, git]
  source: {git: 'file://$scratch/bench', at: v1}
  setup: [make]
  run: ./bench data/numbers
  responses:
    took: {pattern: 'sums took ([0-9]+)', unit: cycles}
    sum: {pattern: '^sum ([0-9]+)'}
design: {repetitions: 4}
E2
check "its campaign is as short as the listing it stands for" test "$(grep -c . "$scratch/git.yaml")" -le 14
archive=$("$ASSAY" run "$scratch/git.yaml" -q -o "$scratch/runs" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
check "it runs from a clone at a tag" test -f "${archive:-none}"
"$ASSAY" archive cat "$archive" results/results.csv >"$scratch/results.csv" 2>/dev/null
check "four units, with two responses each" \
    awk -F, 'NR==1 && $0!="row,repetition,order,block,attempt,node,core,start,start_monotonic,took,sum,state.frequency,state.temperature,state.flags" {bad=1} NR>1 && !($9>0 && $10>0 && $11=="0") {bad=1} END {exit bad || NR!=5}' "$scratch/results.csv"
check "the commit that was built is recorded" \
    grep -q "\"commit\": *\"$(git -C "$scratch/bench" rev-parse v1)\"" <("$ASSAY" archive cat "$archive" software/versions.json)
check "the output of every unit is kept" \
    test "$("$ASSAY" archive list "$archive" | grep -c 'results/raw/[0-9].*\.out')" -eq 4
check "the units without factors are still said to be units of cycles" \
    grep -q '"unit": *"cycles"' <("$ASSAY" archive cat "$archive" datapackage.json)

# The same from a folder, with a factor that reaches the program as an environment variable and as an argument.
git -C "$scratch/bench" checkout -q v1
cat >"$scratch/folder.yaml" <<'E2'
experiment:
  name: sums
  source: {folder: bench}
  factors: {scale: {type: integer, minimum: 1, maximum: 1000}, label: {type: text}}
  setup: [make]
  run: {command: [./bench, "data/{label}"]}
  responses: {sum: {pattern: '^sum ([0-9]+)'}}
design: factors.csv
E2
cat >"$scratch/factors.csv" <<'E2'
scale,label
2,numbers
3,"more; touch pwned $(touch pwned)"
E2
cp "$scratch/bench/data/numbers" "$scratch/bench/data/more; touch pwned \$(touch pwned)"
archive=$("$ASSAY" run "$scratch/folder.yaml" -q -o "$scratch/runs" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
"$ASSAY" archive cat "$archive" results/results.csv >"$scratch/results.csv" 2>/dev/null
check "factors reach the program (sum of n*i for i < scale)" \
    awk -F, 'NR==1 {for (i = 1; i <= NF; i++) if ($i == "sum") sum = i; next} $sum != ($1==1 ? 6 : 18) {bad=1} END {exit bad || !sum || NR!=3}' \
    "$scratch/results.csv"
check "values never become shell text" test -z "$(find "$scratch" -name pwned)"
check "the files that were built are listed with their hashes" \
    grep -q "$(sha256sum "$scratch/bench/bench.c" | cut -c1-64)  bench.c" <("$ASSAY" archive cat "$archive" software/source-sha256.txt)

# Failing, clearly.
sed 's/sums took/nothing took/' "$scratch/git.yaml" >"$scratch/pattern.yaml"
refuse "a pattern that matches nothing fails the run, and says what was printed, and where all of it is" 3 \
    "nothing on standard output matches the pattern of 'took', .*; it printed 'loaded.n 3 sums took [0-9]* cycles.nsum 0.n'; see results/raw/3-.*[.]out$" \
    "$ASSAY" run "$scratch/pattern.yaml" -o "$scratch/failed"
check "... which is sealed all the same" "$ASSAY" archive verify "$scratch"/failed/*.zip
check "... as failed" grep -q '"status": *"failed"' <("$ASSAY" archive cat "$scratch"/failed/*.zip run.json)
check "... in the archive" grep -q 'results/raw/3-.*\.out$' <("$ASSAY" archive list "$scratch"/failed/*.zip)
rm -rf "$scratch/failed"
sed 's/setup: \[make\]/setup: [make nothing-like-that]/' "$scratch/git.yaml" >"$scratch/setup.yaml"
refuse "a setup that fails is quoted" 3 "make nothing-like-that.*exited with status 2.*No rule to make target" \
    "$ASSAY" run "$scratch/setup.yaml" -o "$scratch/failed"
cp "$scratch/.err" "$scratch/err"
check "... as the lines that it printed" grep -q '^    make: \*\*\* No rule to make target ' "$scratch/err"
check "... with the place of all" grep -q 'the last lines that node .* printed, from logs/commands/[0-9]*-setup/.*\.err:$' "$scratch/err"
cat >"$scratch/steering.yaml" <<'E2'
experiment:
  name: steering
  run: [sh, -c, 'printf "error \\302\\23331m \\342\\200\\256 \\377\\n" >&2; exit 3']
  responses: {none: {pattern: '^none ([0-9]+)'}}
stop-after-failures: 1
probes: none
E2
"$ASSAY" run "$scratch/steering.yaml" -o "$scratch/steering" 2>"$scratch/err"
check "what a command says does not steer the terminal" grep -qF 'error \xc2\x9b31m \xe2\x80\xae \xff' "$scratch/err"
"$ASSAY" archive extract "$scratch"/steering/*.zip -C "$scratch/steered" >/dev/null
for file in logs/engine.log README.md; do
    check "... nor who reads $file" grep -qF 'error \xc2\x9b31m \xe2\x80\xae \xff' "$scratch/steered/$file"
done
check "... nor run.json" grep -qF 'error \\xc2' "$scratch/steered/run.json"
sed 's/at: v1/at: v99/' "$scratch/git.yaml" >"$scratch/tag.yaml"
refuse "a tag that does not exist is named" 3 "v99" "$ASSAY" run "$scratch/tag.yaml" -o "$scratch/failed"
sed 's,data/numbers,data/nothing,' "$scratch/git.yaml" >"$scratch/run.yaml"
refuse "a command that fails three times in a row ends the run" 3 "3 units in a row failed.*exited with status 3" \
    "$ASSAY" run "$scratch/run.yaml" -o "$scratch/failed"
rm -rf "$scratch/failed"
(cat "$scratch/run.yaml"; echo 'stop-after-failures: 1') >"$scratch/first.yaml"
refuse "... or one, where the campaign says so" 3 "1 units in a row failed" "$ASSAY" run "$scratch/first.yaml" -o "$scratch/failed"
(cat "$scratch/run.yaml"; echo 'stop-after-failures: none') >"$scratch/never.yaml"
refuse "... or none: then all are tried" 3 "4 of 4 units failed" "$ASSAY" run "$scratch/never.yaml" -o "$scratch/failed"
(cat "$scratch/run.yaml"; echo 'stop-after-failures: few') >"$scratch/few.yaml"
refuse "... which must be a number" 2 "few.yaml:.*'stop-after-failures' is 'few', expected a whole number" "$ASSAY" run "$scratch/few.yaml"
rm -rf "$scratch/failed"
sed 's/repetitions: 4/repetitions: 200000/' "$scratch/git.yaml" >"$scratch/many.yaml"
refuse "more units than an archive has room for are refused" 2 "200000 units would keep their output in more files than" \
    "$ASSAY" run "$scratch/many.yaml" -o "$scratch/failed"
check "... before anything is prepared" test "$("$ASSAY" archive cat "$scratch"/failed/*.zip journal.jsonl | grep -c '"event":"command"')" -eq 0

# Limits: of the pattern, and of what a unit prints.
deep=$(printf '(%.0s' {1..14000})'[0-9]'$(printf ')%.0s' {1..14000})
sed "s/'sums took .*', unit/'$deep', unit/" "$scratch/git.yaml" >"$scratch/deep.yaml"
refuse "a pattern beyond a limit is refused, with its place" 2 "deep.yaml:8:21: the pattern of 'took', '\(+...', has 28005 bytes, expected at most 500" \
    "$ASSAY" run "$scratch/deep.yaml" --dry-run
cat >"$scratch/chatty.yaml" <<'E2'
experiment:
  name: chatty
  run: [sh, -c, 'echo first 1; yes | head -c 17000000; echo last 2']
  responses: {first: {pattern: '^first ([0-9]+)'}}
design: {repetitions: 2}
probes: none
E2
archive=$("$ASSAY" run "$scratch/chatty.yaml" -o "$scratch/chatty" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
said='it printed 17000015 bytes, of which only the first 16 MiB are kept and searched'
check "a unit that prints more than is kept is noted, once" test "$(grep -c "unit [12] on node .*: $said" "$scratch/err")" -eq 1
check "... and in the journal each is" \
    test "$("$ASSAY" archive cat "$archive" journal.jsonl | grep -c '"event":"output-cut".*"output_bytes":17000015')" -eq 2
sed "s/{first: .*/{last: {pattern: '^last ([0-9]+)'}}/" "$scratch/chatty.yaml" >"$scratch/late.yaml"
refuse "a pattern that finds nothing in what is kept says how much was not" 3 "nothing on standard output matches the pattern of 'last', .*; $said" \
    "$ASSAY" run "$scratch/late.yaml" -o "$scratch/chatty"

# Going on with what was built: a branch moves on meanwhile, a folder is edited. Units fail until $scratch/go is there.
git init -q "$scratch/moving"
commit() { echo "version $1" >"$scratch/moving/version"; git -C "$scratch/moving" add -A; git -C "$scratch/moving" -c user.name=t -c user.email=t@localhost commit -qm "$1"; }
commit 1
git -C "$scratch/moving" branch -q -f trunk
cat >"$scratch/moving.yaml" <<E2
experiment:
  name: moving
  source: {git: 'file://$scratch/moving', at: trunk}
  run: [sh, -c, 'test -e $scratch/go && cat version']
  responses: {version: {pattern: '^version ([0-9]+)'}}
design: {repetitions: 4}
probes: none
E2
refuse "a run that fails" 3 "3 units in a row failed" "$ASSAY" run "$scratch/moving.yaml" -q -o "$scratch/moved"
cp -r "$scratch/moved" "$scratch/torn"
commit 2
git -C "$scratch/moving" branch -q -f trunk
touch "$scratch/go"
archive=$("$ASSAY" resume "$scratch"/moved/*.zip -q 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
check "... is resumed with the commit that it began with, although the branch has moved" \
    test "$("$ASSAY" archive cat "${archive:-none}" results/results.csv | awk -F, 'NR > 1 {print $10}' | sort | uniq -c | xargs)" = "4 1"
check "... and that is recorded" \
    test "$("$ASSAY" archive cat "${archive:-none}" software/source-commit.txt)" = "$(git -C "$scratch/moving" rev-parse trunk~1)"
again=$("$ASSAY" run "${archive:-none}" -q -o "$scratch/again" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"
is "... and built again when the archive is run again" \
    "$("$ASSAY" archive cat "${again:-none}" software/source-commit.txt)" "$(git -C "$scratch/moving" rev-parse trunk~1)"
truncate -s 0 "$scratch"/torn/*/software/source-commit.txt
refuse "... or, when it is not known any more, refused" 5 "source-commit.txt' does not have the commit that this run has built" \
    "$ASSAY" resume "$scratch"/torn/*/ -q
rm -rf "$scratch/go" "$scratch/moved"
sed "s,{git: .*},{folder: '$scratch/moving'}," "$scratch/moving.yaml" >"$scratch/edited.yaml"
"$ASSAY" run "$scratch/edited.yaml" -q -o "$scratch/moved" >"$scratch/out" 2>"$scratch/err"
touch "$scratch/go"
commit 3
refuse "a folder that was edited since is refused, with the file that is another" 2 \
    "the experiment's source '.*/moving' has changed since the run began: 'version' has changed; expected" \
    "$ASSAY" resume "$scratch"/moved/*.zip -q
finish
