#!/bin/bash
# Files that units leave and `keep` names: in the archive beside what the unit printed, its own unit's and no other's, or the
# unit has failed with the reason.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
campaign() { # campaign NAME KEEP COMMAND [LINE...]: a unit for each of the factor's levels
    printf '%s\n' "testbed: local" "probes: none" "experiment:" "  name: $1" "  factors: {i: {type: integer}}" \
        "  run: {keep: $2, command: [sh, -c, '$3']}" "  responses: {found: {pattern: '^i ([0-9]+)'}}" \
        "design: {generate: factorial, factors: {i: [1, 2, 3]}, order: as-written}" "${@:4}" >"$1.yaml"
}
member() { "$ASSAY" archive cat "$@"; }
raw() { "$ASSAY" archive list "$1" | grep -o "results/raw$2\$"; }

campaign kept '[trace.bin, notes.txt]' 'printf "\0%s\377" "$i" >trace.bin; seq "$i" >notes.txt; echo "i $i"'
archive=$("$ASSAY" run kept.yaml -q -o runs)
check "a run whose units leave two files" "$ASSAY" archive verify "$archive"
for i in 1 2 3; do
    member "$archive" "$(raw "$archive" "/$i-.*[.]trace[.]bin")" >kept.bin
    printf '\0%s\377' $i >made.bin
    check "the file of unit $i is as it was made" cmp kept.bin made.bin
    is "... and the other" "$(member "$archive" "$(raw "$archive" "/$i-.*[.]notes[.]txt")" | wc -l)" $i
done
report $(member "$archive" manifest-sha256.txt | grep -q "^$(printf '\0003\377' | sha256sum | cut -c1-64)  results/raw/3-.*[.]trace[.]bin$"; echo $?) \
    "its hash is in the manifest"

# ---- What cannot be kept
reason() { # reason NAME KEEP PATTERN COMMAND...: unit 2 fails for that reason and the others are done
    campaign "$1" "$2" "$4"
    "$ASSAY" run "$1.yaml" -q -o "runs-$1" >out 2>err
    member "runs-$1"/*.zip results/results.csv >results.csv
    is "$1: the other units are done" "$(cut -d, -f1 results.csv | tail -n +2 | tr '\n' ' ')" "1 3 "
    member "runs-$1"/*.zip journal.jsonl | grep '"unit-failed"' >failed
    check "... and it says why" contains failed "$3"
}
reason missing '[out.txt]' "the unit left no file 'out.txt', which 'keep' names" 'echo "i $i"; [ $i = 2 ] || echo x >out.txt'
reason link '[out.txt]' "'out.txt', which 'keep' names, is not a file" 'echo "i $i"; [ $i = 2 ] && ln -s /etc/passwd out.txt || echo x >out.txt'
report $(! raw runs-link/*.zip '/2-.*out[.]txt' >/dev/null; echo $?) "nothing of where the link leads is in the archive"
reason folder '[out.txt]' "'out.txt', which 'keep' names, is not a file" 'rm -rf out.txt; echo "i $i"; [ $i = 2 ] && mkdir out.txt || echo x >out.txt'
reason large '[out.txt]' "the file 'out.txt' has more than 16 MiB, the most that 'keep' takes of one file" \
    'echo "i $i"; [ $i = 2 ] && truncate -s 16777217 out.txt || echo x >out.txt'
campaign failing '[out.txt]' 'echo "unit $i" >out.txt; [ $i != 2 ] && echo "i $i"'
"$ASSAY" run failing.yaml -q -o runs-failing >out 2>err
is "a unit that fails leaves its file" "$(member runs-failing/*.zip "$(raw runs-failing/*.zip '/2-.*out[.]txt')")" "unit 2"

# ---- A file that takes longer to be brought home than a unit may be idle: the unit has ended, and is not ended as stuck
mkdir slow
cat >slow/head <<E2
#!/bin/sh
[ "\$3" != out.txt ] || { touch $scratch/asked; until [ -e $scratch/go ]; do sleep 0.1; done; }
exec $(command -v head) "\$@"
E2
chmod +x slow/head
campaign slow '[out.txt], placement: job, idle-timeout: 10 s' 'echo "i $i"; echo x >out.txt'
sed -i 's/i: \[1, 2, 3\]/i: [1]/' slow.yaml
(
    move_clock
    PATH=$scratch/slow:$PATH exec "$ASSAY" run slow.yaml -q -o runs-slow >out 2>err
) &
child=$!
eventually test -e asked
for ((i = 0; i < 12; i++)); do
    ASSAY_TEST_CLOCK=$scratch/clock advance 6s
    read -rt 0.1 -u "$silence" || :
done
touch go; wait $child
is "a unit whose file comes slowly is done" "$(member runs-slow/*.zip results/results.csv | tail -n +2 | wc -l)" 1

# ---- Names, and where it makes no sense
for name in ../out /etc/passwd .hidden -x a/b out err 'a b'; do
    campaign names "['$name']" 'echo "i $i"'
    refuse "the name $name" 2 "names.yaml:6:[0-9]+: 'keep' is '$name', expected the name of a file in the unit's working folder" "$ASSAY" run names.yaml --dry-run
done
sed -i "s/keep: .*, command/placement: core, keep: [x], command/" names.yaml
sed 's/placement: core, keep: \[x\]/keep: [x, y, x]/' names.yaml >twice.yaml
refuse "a name twice" 2 "twice.yaml:6:[0-9]+: 'keep' names 'x' twice" "$ASSAY" run twice.yaml --dry-run
refuse "units on every core" 2 "expected node or job, since 'run' has 'keep'" "$ASSAY" run names.yaml --dry-run

# ---- A run that is killed while a unit has left its file: the unit is measured again
mkfifo gate
campaign killed '[out.txt]' "echo \"i \$i\"; echo \$i >out.txt; [ \$i != 2 ] || [ -e $scratch/again ] || read -r x <$scratch/gate"
"$ASSAY" run killed.yaml -q -o runs-killed >out 2>err &
child=$!
eventually sh -c "grep -q '^2,' runs-killed/*/results/results.csv || ls runs-killed/*/results/raw/1-*.out.txt"
kill -KILL $child; wait $child 2>/dev/null
touch again
check "a run that was killed is resumed" "$ASSAY" resume "$(echo runs-killed/*)" -q
archive=$(echo runs-killed/*.zip)
check "... and sealed" "$ASSAY" archive verify "$archive"
for i in 1 2 3; do is "the file of unit $i" "$(member "$archive" "$(raw "$archive" "/$i-.*[.]out[.]txt")")" $i; done
is "there is one of each" "$(raw "$archive" '.*[.]out[.]txt' | wc -l)" 3

check "the plan says what is kept" "$ASSAY" experiments show predict
report $(output '^ *keep +\[?prediction.zip'; echo $?) "as the experiment predict does"
finish
