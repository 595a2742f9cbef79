#!/bin/bash
# The stencils of experiments/stencil with real ranks: the same values as a serial reference on every decomposition, the
# mass conserved, and a campaign whose suggested model fits.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
command -v mpicc.openmpi >"$scratch/which" || plan_skip "no OpenMPI here (libopenmpi-dev)"
bed_first 2
source=$ASSAY_SOURCE/experiments/stencil
cd "$scratch" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
build() { mpicc.openmpi -O2 -Wall -Wextra -Werror -o "$1" "$2/stencil.c" "$2/device-cpu.c" -lm; } # build PROGRAM FOLDER
run() { mpirun.openmpi --bind-to none --mca pml ob1 -n "$1" ./stencil "${@:2}"; }                # run RANKS OPTIONS
difference() { sed -n 's/^differs by \(.*\) from.*/\1/p' .out; }
mass() { sed -n 's/^mass changes by \(.*\) a step/\1/p' .out; }
is_below() { awk -v a="$1" -v b="$2" 'BEGIN { print (a >= 0 && a < b) }'; } # not of nan

check "it builds" build stencil "$source"
for problem in diffusion lbm; do
    for parts in 1,1 1,3 2,1 2,2; do
        ranks=$((${parts/,/*}))
        check "$problem on $parts ranks" run $ranks --problem $problem --parts $parts --mesh 6,12,12 --steps 40
        is "is what the reference says" "$(is_below "$(difference)" 1e-5)" 1
        is "and keeps its mass" "$(is_below "$(mass)" 1e-7)" 1
        cp .out plain
        check "with overlap" run $ranks --problem $problem --parts $parts --mesh 6,12,12 --steps 40 --overlap
        is "the values are the same" "$(grep -E '^(differs|mass)' .out)" "$(grep -E '^(differs|mass)' plain)"
    done
done
check "four ranks" run 4 --problem lbm --parts 2,2 --mesh 6,12,8 --steps 1
# Of a part of 6 x 6 x 4 points: 5 values through each side, the planes of z with the halos of y; 253 operations a point.
is "send 5 values a point of their sides" "$(sed -n 's/^sent \(.*\)/\1/p' .out)" "$((4 * 5 * 2 * (6 * 4 + 6 * 8))) flops $((253 * 144)) bytes $((4 * 38 * 144))"

# ---- A reference that could not find an error would be none
mkdir wrong
for change in 's/(halo ? -1 : 1)/(halo ? 1 : 1)/' 's/LBM_OMEGA 1.25f/LBM_OMEGA 1.26f/' 's/1 - 1.5f/1 - 1.4f/' 's/behind) -  */behind) + /'; do
    cp "$source"/*.[ch] wrong
    sed -i "$change" wrong/field.h
    cmp -s "$source/field.h" wrong/field.h && echo "# nothing was changed by $change"
    [ "$change" != 's/LBM_OMEGA 1.25f/LBM_OMEGA 1.26f/' ] || sed -i 's/(double)LBM_OMEGA/1.25/' wrong/stencil.c
    check "with an error in it ($change) it builds" build stencil wrong
    check "and runs" run 2 --problem lbm --parts 1,2 --mesh 6,4,4 --steps 1
    is "and is found" "$(is_below "$(difference)" 1e-5)" 0
done
check "it builds again" build stencil "$source"
refuse "ranks that are no parts" 2 'the parts are not as many as the ranks' run 2 --parts 2,2
refuse "points that cannot be dealt out" 2 'no multiple of the parts' run 2 --parts 2,1 --mesh 8,7,8
refuse "an option that is none" 2 'usage: stencil' run 1 --problem heat

# ---- A campaign over two nodes
cat >campaign.yaml <<END
experiment: stencil
testbed: {hosts: 'node[1-2]', ssh-config: $BED/ssh_config}
design:
  factors: {problem: [diffusion, lbm], overlap: ["no", "yes"], nx: [16, 32, 64], ny: [16], nz: [16], ranks: [2], steps: [4]}
  repetitions: 2
options: {bind: none, device: cpu, flags: -O2}
probes: none
END
check "a campaign of stencils" bed run "$ASSAY" run campaign.yaml -o runs
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { print $at }' runs/*/results/results.csv; }
is "every unit is done and right" "$(column difference | awk '$1 < 1e-5' | wc -l)" 24
is "on both nodes" "$(column node | sort -u)" "node[1-2]"
is "a rate is what is computed by its time" "$(paste -d' ' <(column rate) <(column step) <(column flops) |
    awk '{ r = $1 * $2 / (2 * $3); if (r < 0.99 || r > 1.01) print }')" ""
check "its suggested model fits" "$ASSAY" fit runs/*.zip -o roofline.json
is "with no term below 0" "$(grep -c '"estimate": *-' roofline.json)" 0
check "both problems together have two intensities, as a roofline needs" \
    "$ASSAY" fit roofline runs/*.zip --response compute --sizes flops,bytes --by overlap
finish
