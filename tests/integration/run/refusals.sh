#!/bin/bash
# Bad input gets one clear sentence with its place, exit code 2, and touches nothing.
. "$(dirname "$0")/../tap.sh"
export ASSAY_PATH=$scratch/path
mkdir -p "$ASSAY_PATH/experiments/tiny" "$scratch/bin"
cat >"$ASSAY_PATH/experiments/tiny/experiment.yaml" <<'E2'
name: tiny
factors:
  n: {type: integer, minimum: 1, maximum: 100}
  m: {type: integer, minimum: 1, default: 2 * n}
require: [m >= n]
responses: {answer: {pattern: '([0-9]+)', unit: s}}
options: {level: {type: integer, minimum: 0, maximum: 53, default: 0}, kind: {choices: [red, blue], default: red}}
run: [echo, "{n}"]
E2
write() { cat >"$scratch/c.yaml"; }
bad() { # bad NAME PATTERN: runs c.yaml
    refuse "$1" 2 "$2" "$ASSAY" run "$scratch/c.yaml" -o "$scratch/runs"
}
refuse "a missing campaign" 2 "cannot open '.*none.yaml'" "$ASSAY" run "$scratch/none.yaml"
write </dev/null; bad "an empty campaign" "c.yaml:1:1: the file is empty; expected a document"
write <<<'experiment: tinny'; bad "an experiment that does not exist, nearest named" "c.yaml:1:13: .*'tinny'.*'tiny'"
write <<<'experiment: ./nowhere'; bad "an experiment's path that leads nowhere" "c.yaml:1:13: .*experiment.yaml"
mkdir -p "$scratch/extracted/experiment"
echo 'experiment: ./' >"$scratch/extracted/c.yaml"
touch "$scratch/extracted/experiment/experiment.yaml"
refuse "a campaign without its experiment" 2 "c.yaml:1:13: there is no 'experiment.yaml' in .*expected the folder of an experiment$" \
    "$ASSAY" run "$scratch/extracted/c.yaml"
touch "$scratch/extracted/inputs.json"
refuse "... which in an archive that was extracted is the copy beside it" 2 "extracted/experiment/experiment.yaml:1:1: the file is empty; expected a document" \
    "$ASSAY" run "$scratch/extracted/c.yaml"
write <<<$'experiment: tiny\ndesing: x.csv'; bad "an unknown key, nearest named" "c.yaml:2:1: 'desing'.*'design'"
write <<<$'experiment: tiny\nseed: 42'; bad "a key of the design beside it" "c.yaml:2:1: 'seed' belongs inside 'design'"
write <<<$'experiment: tiny\ntestbed: locale\ndesign: d.csv'; echo $'n\n1' >"$scratch/d.csv"
bad "an unknown testbed" "c.yaml:2:10: .*'locale'.*'local'"
write <<<$'experiment: tiny\nexperiment: tiny'; bad "a duplicate key" "c.yaml:2:1: .*experiment.*(twice|already|duplicate)"
write <<<$'experiment: tiny\noptions: {level: 54}\ndesign: d.csv'; bad "an option out of range" "c.yaml:2:18: option 'level' is '54', expected a whole number from 0 to 53"
write <<<$'experiment: tiny\noptions: {kind: green}\ndesign: d.csv'; bad "an option that is no choice" "c.yaml:2:17: option 'kind' is 'green', expected one of red, blue"
write <<<$'experiment: tiny\noptions: {levl: 1}\ndesign: d.csv'; bad "an option that is not there, nearest named" "c.yaml:2:11: .*no option 'levl'.*'level'"
write <<<$'experiment: tiny\ndesign: d.csv'
refuse "--set is checked in the same way" 2 "option 'level' is 'x', expected a whole number" "$ASSAY" run "$scratch/c.yaml" --set level=x
refuse "--set without a value" 2 "'level' is not a setting" "$ASSAY" run "$scratch/c.yaml" --set level
refuse "a seed that is none" 2 "seed.*'-1'|'-1'.*seed" "$ASSAY" run "$scratch/c.yaml" --seed -1
design() { # design NAME PATTERN: the CSV on stdin
    cat >"$scratch/d.csv"; bad "$1" "$2"
}
write <<<$'experiment: tiny\ndesign: nowhere.csv'; bad "a design that is not there" "nowhere.csv"
write <<<$'experiment: tiny\ndesign: d.csv'
design "an empty design" "d.csv.*(empty|header)" </dev/null
design "a short row" "d.csv:3" <<<$'n,m\n1,2\n3'
design "an unknown column, nearest named" "d.csv:1:3: .*'mm'.*'m'" <<<$'n,mm\n1,2'
design "a value out of range" "d.csv:2:1: .*'101'.*from 1 to 100" <<<$'n\n101'
design "a row that breaks a condition" "d.csv:2.*m >= n" <<<$'n,m\n5,4'
printf 'experiment: tiny\ndesign: d.csv\0\n' >"$scratch/c.yaml"; bad "a NUL byte" "c.yaml:2:14: .*NUL"
printf 'experiment: tiny\nname: \xff\n' >"$scratch/c.yaml"; bad "invalid UTF-8" "c.yaml:2:7: .*UTF-8"
write <<<$'experiment: &a {name: *a}'; bad "an anchor that loops" "c.yaml:1:23: .*a"
inline() { # inline NAME PATTERN: an experiment in place on stdin
    { echo 'experiment:'; sed 's/^/  /'; } >"$scratch/c.yaml"; bad "$1" "$2"
}
inline "an experiment without a run command" "'run'" <<<$'name: x\nresponses: {a: {pattern: "(1)"}}'
inline "a response without a pattern" "c.yaml:4:.*pattern" <<<$'name: x\nrun: echo\nresponses: {a: {unit: s}}'
inline "a pattern without a group" "c.yaml:4:.*no group" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "1"}}'
inline "a pattern that does not compile" "c.yaml:4:.*regular expression" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1"}}'
inline "a factor that would be an environment variable of the system's" "c.yaml:5:.*'PATH'" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\nfactors: {PATH: {}}'
inline "an expression with an unknown name" "c.yaml:6:.*'k'" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\nfactors: {n: {}}\nrequire: [n > k]'
inline "a placement that is none" "placement.*everywhere" <<<$'name: x\nrun: {command: echo, placement: everywhere}\nresponses: {a: {pattern: "(1)"}}'
inline "a {name} that names nothing, nearest named" "\{nn\}.*\{n\}" <<<$'name: x\nrun: [echo, "{nn}"]\nresponses: {a: {pattern: "(1)"}}\nfactors: {n: {default: "1"}}\ndesign: {generate: factorial, factors: {n: [1]}}'
inline "a password in a URL, which is not repeated" "c.yaml:5:.*contains a password or token" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\nsource: {git: "https://me:hunter2@example.org/x.git"}'
inline "a token in a URL" "c.yaml:5:.*password or token" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\nsource: {git: "https://token@example.org/x.git"}'
inline "... or in its query" "c.yaml:5:.*password or token" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\nsource: {git: "https://example.org/x.git?private_token=S"}'
inline "an option that has a factor's name" "c.yaml:6:13: 'n' is already a factor" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\nfactors: {n: {}}\noptions: {n: {default: 1}}'
inline "a factor that has a name of every experiment's" "c.yaml:5:13: 'cpus' is" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\nfactors: {cpus: {}}'
inline "a package that apt would remove" "'bash-'" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)"}}\npackages: [bash-]'
inline "a unit that is no word" "'unit' is 'a b', expected a word" <<<$'name: x\nrun: echo\nresponses: {a: {pattern: "(1)", unit: "a b"}}'
inline "a time limit that is no time" "c.yaml:3:.*timeout" <<<$'name: x\nrun: {streamed: echo, timeout: 3m}\nresponses: {a: {}}'
inline "an empty command" "c.yaml:3:.*empty command" <<<$'name: x\nrun: ""\nresponses: {a: {pattern: "(1)"}}'
shell_text() { # shell_text COMMAND SHELL: the words of a command
    printf '%s\n' 'name: x' "run: $1" 'responses: {a: {pattern: "(1)"}}' 'factors: {n: {}}' 'design: {generate: factorial, factors: {n: [1]}}' |
        inline "a value in shell text: $1" "c.yaml:3:8: '\{n\}' stands in text that '$2' executes: .*pass the value as an argument"
}
shell_text '[sh, -c, "echo {n}"]' sh
shell_text '[timeout, "9", env, A=b, /bin/bash, -lc, "{{ echo {n}; }}"]' /bin/bash
shell_text '[bash, -o, pipefail, -e, -c, --, "echo {n}"]' bash
shell_text '[busybox, sh, -c, "exec \"$@\"", sh, dash, -ec, "echo {n}"]' dash
shell_text '[bash, --rcfile, x, -c, "echo {n}"]' bash
shell_text '[su, nobody, -c, "echo {n}"]' su
shell_text '[python3, -O, -c, "print({n})"]' python3
shell_text '[python3.11, "-cprint({n})"]' python3.11
shell_text '[su, nobody, "--command=echo {n}"]' su
operand_text() { # operand_text COMMAND PROGRAM
    printf '%s\n' 'name: x' "run: $1" 'responses: {a: {pattern: "(1)"}}' 'factors: {n: {}}' 'design: {generate: factorial, factors: {n: [1]}}' |
        inline "a value in shell text: $1" "c.yaml:3:8: '\{n\}' stands in text that '$2' gives to a shell: .*reads the environment variable 'n'"
}
operand_text '[watch, -n, "1", echo, "{n}"]' watch
operand_text '[timeout, "9", ssh, -p, "22", host, echo, "{n}"]' ssh
operand_text '[sg, users, "echo {n}"]' sg
inline "... in setup as well" "c.yaml:4:.*'\{n\}' stands in text that 'zsh' executes" <<<$'name: x\nrun: echo\nsetup: [[zsh, -c, "echo {n}"]]\nresponses: {a: {pattern: "(1)"}}\noptions: {n: {default: 1}}'
for fine in "[sh, -c, 'echo \"\$1\"', sh, '{n}']" "[taskset, -c, '{n}', echo, '{n}']" "[python3, a.py, -c, '{n}']" "[flock, f, a, -c, '{n}']" "[bash, a.sh, -c, '{n}']" "[sh, -c, 'echo {{n}}']" \
    "[rsync, -e, ssh, a, 'b{n}']" "[grep, watch, 'b{n}']" "[ssh, 'b{n}', hostname]"; do
    printf '%s\n' 'experiment:' '  name: x' "  run: $fine" '  responses: {a: {pattern: "(1)"}}' '  factors: {n: {}}' '  design: {generate: factorial, factors: {n: [1]}}' >"$scratch/c.yaml"
    check "a value that is an argument: $fine" "$ASSAY" run "$scratch/c.yaml" --dry-run
done
write <<<$'experiment: tiny\nworkspace: here\ndesign: d.csv'; echo $'n\n1' >"$scratch/d.csv"
bad "a workspace that is no absolute path" "c.yaml:2:12: 'workspace' is 'here', expected an absolute path"

# What a run refuses when it knows its nodes, a dry run refuses where they are this machine; of others it warns.
write <<'END'
experiment: {name: big, factors: {n: {type: integer}}, maxima: {most: n}, memory: most * 1e12, run: [echo, "{n}"], responses: {answer: {pattern: '([0-9]+)'}}}
testbed: local
design: {generate: factorial, factors: {n: [1, 30]}}
END
large="the design needs .* TiB of memory on .* \(.* of 27.3 TiB\), but .* are available; expected smaller sizes or fewer processes"
bad "processes that this machine has no memory for" "$large"
refuse "... as a dry run says" 2 "$large" "$ASSAY" run "$scratch/c.yaml" --dry-run
sed -i 's/local/{hosts: "n-[1-4]"}/' "$scratch/c.yaml"
refuse "... and warns of, where the nodes are others" 0 "warning: a run on nodes like this machine .* is refused: $large.*; a run asks its own nodes before it measures, and may refuse them" \
    "$ASSAY" run "$scratch/c.yaml" --dry-run
write <<'END'
experiment: {name: odd, factors: {n: {type: integer}, q: {type: integer, minimum: 1, default: node_cores / 1000003}}, run: [echo, "{n}"], responses: {answer: {pattern: '([0-9]+)'}}}
testbed: {hosts: "n-[1-4]"}
design: {generate: factorial, factors: {n: [1]}}
END
refuse "a factor that no such node admits is warned of as well" 0 "is refused: .*the default of 'q', node_cores / 1000003, is .*, expected a whole number of at least 1" \
    "$ASSAY" run "$scratch/c.yaml" --dry-run
rm -rf "$scratch/runs"
check "nothing was started for any of them" test ! -e "$scratch/runs"
if [ "$(id -u)" = 0 ]; then
    printf 'experiment: tiny\ndesign: d.csv\n' >"$scratch/c.yaml"
    mkdir "$scratch/theirs" && chmod 2775 "$scratch/theirs"
    refuse "runs of root's in a folder of others'" 2 "cannot make folder '$scratch/theirs/runs': '$scratch/theirs' belongs to user 0 and has mode 2775" \
        "$ASSAY" run "$scratch/c.yaml" -o "$scratch/theirs/runs"
    cp -r "$ASSAY_PATH/experiments/tiny" "$scratch/theirs"
    printf 'experiment: ./theirs/tiny\ndesign: d.csv\n' >"$scratch/c.yaml"
    bad "an experiment there" "c.yaml:1:13: .*'$scratch/theirs' belongs to user 0 and has mode 2775"
fi

# What Linux does not start.
long=$(head -c 131072 /dev/zero | tr '\0' a)
printf 't\n%s\n' "$long" >"$scratch/d.csv"
printf 'experiment: {name: x, factors: {t: {type: text}}, run: "echo 1", responses: {a: {pattern: "(1)"}}}\ndesign: d.csv\nprobes: none\n' >"$scratch/c.yaml"
refuse "a value that no environment variable can have" 3 "its environment variable 't' has 131074 bytes; Linux allows 131071 in each .*give the content in a file" \
    "$ASSAY" run "$scratch/c.yaml" -q -o "$scratch/long"
sed -i "s|\"echo 1\"|[echo, '{t}']|" "$scratch/c.yaml"
refuse "... and no argument" 2 "c.yaml:1:.*an argument is longer than 65536 bytes" "$ASSAY" run "$scratch/c.yaml" -q -o "$scratch/long"

# A limit of the size of files (ulimit -f): errors of writing, and what is started has the signal as it was.
printf 'experiment: {name: x, run: "(ulimit -f 1; exec head -c 8000 /dev/zero >big); echo a $?", responses: {a: {pattern: "a ([0-9]+)"}}}\nprobes: none\n' >"$scratch/c.yaml"
refuse "a small limit refuses the start" 1 "cannot reserve .*File too large" bash -c 'ulimit -f 10; exec "$@"' bash "$ASSAY" run "$scratch/c.yaml" -q -o "$scratch/limited"
archive=$("$ASSAY" run "$scratch/c.yaml" -q -o "$scratch/signalled" 2>"$scratch/err") || cat "$scratch/err"
check "programs end by SIGXFSZ as ever" grep -q ',153' <("$ASSAY" archive cat "$archive" results/results.csv)
refuse "no campaign at all" 2 "campaign|CAMPAIGN|operand" "$ASSAY" run
refuse "two campaigns" 2 "operand|one|CAMPAIGN" "$ASSAY" run a.yaml b.yaml
finish
