#!/bin/bash
# The example campaign: HPL on four nodes over Open MPI, with turbo off and block size, grid and broadcast as factors, as
# examples/hpl.yaml has it but for sizes; and HPL on each node alone.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
command -v mpicc >/dev/null || plan_skip "no Open MPI (libopenmpi-dev)"
cd "$scratch" || exit 1
. "$ASSAY_SOURCE/tests/integration/real-hpl.sh"
bed_first 4 --names 'node-%' --machine intel-pstate:cores=2,threads=1 --share "${xhpl%/*}"
bed can kernel-files || plan_skip "no FUSE here"

# Every line of the example, with sizes that a test has time for.
sed -e 's/80%/200/' -e 's/128, 192, 256/32, 48/' -e 's/P: .4, 8./P: [1, 2]/' -e 's/1ringM, 2ringM, long/1ringM, long/' \
    -e 's/repetitions: 3/repetitions: 1/' -e "s|hosts: 'node-.1-4.'|hosts: 'node-[1-4]', ssh-config: $BED/ssh_config|" \
    "$ASSAY_SOURCE/examples/hpl.yaml" >hpl.yaml
cat >>hpl.yaml <<E2
    ranks: [4]
options: {hpl: $xhpl, bind: none, dgemm: "no"}
probes: none
E2
# The factor belongs into the design.
sed -i '/^    ranks: .4.$/d; s/^    BCAST:/    ranks: [4]\n    BCAST:/' hpl.yaml
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { print $at }' "$1"/*/results/results.csv; }
check "HPL on four nodes" bed run "$ASSAY" run hpl.yaml -o campaign
is "... every row" "$(column campaign row | sort -n | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')" "1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 "
is "... on all nodes" "$(column campaign node | sort -u)" "node-[1-4]"
is "... and each is right" "$(column campaign passed | sort -u) $(column campaign residual | awk '$1 > 0 && $1 < 16 { n++ } END { print n }')" "yes 8"
is "... with a grid of all ranks" "$(paste -d' ' <(column campaign P) <(column campaign Q) | awk '{ print $1 * $2 }' | sort -u)" 4
# N is the same, so that HPL's own count of operations is too.
is "... rate times time is the work" "$(paste -d' ' <(column campaign rate) <(column campaign time) |
    awk '{ w = $1 * $2 / ((2 / 3 * 200^3 + 1.5 * 200^2) / 1e9); if (w < 0.999 || w > 1.001) print }')" ""
is "... the residual is the same whatever was sent how" "$(paste -d' ' <(column campaign NB) <(column campaign P) <(column campaign residual) | sort -u | wc -l)" 4
is "... the best HPL.dat is that of a unit on all nodes" "$("$ASSAY" report campaign/*.zip --best | awk '$2 == "N" || $2 == "BCAST" && $1 ~ /^[14]$/ { print $2 }' | xargs)" "N BCAST"
is "... turbo was off, and is on again" "$(grep -h '"event":"control"' campaign/*/journal.jsonl | grep -c '"turbo","asked":"off","before":"on","after":"off"') $(for i in 1 2 3 4; do bed on $i cat /sys/devices/system/cpu/intel_pstate/no_turbo; done | tr '\n' ' ')" "4 0 0 0 0 "

sed -e 's/bind: none/bind: none, placement: node, trace: "yes"/; s/ranks: .4./ranks: [2]/; s/P: .1, 2./P: [1]/; s/32, 48/32/; s/1ringM, long/1ringM/; s/^controls.*//' hpl.yaml >alone.yaml
check "HPL on each node alone, all at once" bed run "$ASSAY" run alone.yaml -o alone
is "... each node does its own" "$(column alone node | sort | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')" "node-1:1 node-2:1 node-3:1 node-4:1 "
check "... and counts once in the answer" "$ASSAY" report alone/*.zip
report $(output '^ *200 +4 +[0-9]' && output '^intervals +of the mean over nodes .*the mean of its units'; echo $?) "... with an interval over nodes"
is "... and to the same result" "$(column alone residual | sort -u | wc -l)" 1
# What the ranks of a unit multiply is HPL's work, but for what its panels do by smaller kernels and its look-ahead by none.
is "... its calls are traced: the products are most of the work" "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $at["kernel"] == "dgemm" { work[$at["order"] "/" $at["node"]] += 2 * $at["m"] * $at["n"] * $at["k"] }
    END { for (unit in work) { part = work[unit] / (2 / 3 * 200^3); n += part > 0.5 && part < 1.1 } print n }' alone/*/results/tables/kernels.csv)" 4
is "... each byte that is sent arrives" "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    NR > 1 { bytes[$at["operation"]] += $at["size"] }
    END { print (bytes["Send"] == bytes["Recv"] && bytes["Send"] >= 4 * 8 * 200 * 200 / 2) }' alone/*/results/tables/messages.csv)" 1
check "... which fit takes" "$ASSAY" fit linear alone/*.zip --table kernels --by kernel --sizes m,n,k -o kernels.json
finish
