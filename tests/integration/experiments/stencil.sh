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
        check "$problem on $parts ranks" run $ranks $problem 6,12,12 $parts 40 no
        is "is what the reference says" "$(is_below "$(difference)" 1e-5)" 1
        is "and keeps its mass" "$(is_below "$(mass)" 1e-7)" 1
        cp .out plain
        check "with overlap" run $ranks $problem 6,12,12 $parts 40 yes
        is "the values are the same" "$(grep -E '^(differs|mass)' .out)" "$(grep -E '^(differs|mass)' plain)"
    done
done
check "four ranks" run 4 lbm 6,12,8 2,2 1 no
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
    check "and runs" run 2 lbm 6,4,4 1,2 1 no
    is "and is found" "$(is_below "$(difference)" 1e-5)" 0
done
cp "$source"/*.[ch] wrong
sed -i 's|^    memcpy(values, device->in.*|&\n    values[part_row(device->part, 1, 1)] = 0.0f / 0.0f;|' wrong/device-cpu.c
check "with a value that is no number it builds" build stencil wrong
check "and runs" run 2 lbm 6,4,4 1,2 1 no
is "and is found, though it is not the last one" "$(is_below "$(difference)" 1e-5)" 0
check "it builds again" build stencil "$source"
refuse "ranks that are no parts" 2 'the number of parts, PARTS_Y times PARTS_Z, is not the number of ranks' run 2 lbm 8,8,8 2,2 1 no
refuse "points that cannot be dealt out" 2 'not divisible by PARTS_Y' run 2 lbm 8,7,8 2,1 1 no
refuse "a mesh of two sizes" 2 'a number is not from 1 to 1048576, or there are too many or too few numbers' run 1 lbm 8,8 1,1 1 no
refuse "a problem that is none" 2 'a word is unknown' run 1 heat 8,8,8 1,1 1 no
refuse "a word too many" 2 'usage: stencil' run 1 lbm 8,8,8 1,1 1 no no

# ---- Devices that are no processor
# One that updates the inside while the ranks exchange, by a clock of its own: a point takes a nanosecond, and what is
# copied or unpacked a microsecond.
cat >other.c <<'END'
#define device_update update_now
#define device_wait wait_now
#define device_take take_now
#define device_put put_now
#include "device-cpu.c"
#undef device_update
#undef device_wait
#undef device_take
#undef device_put
#include <time.h>
static long ns, left;
int clock_of_device(clockid_t clock, struct timespec *time) {
    (void)clock;
    *time = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}
static void pass(long more) {
    ns += more;
    left -= left < more ? left : more;
}
void device_update(struct device *device, struct box box, int shell) {
    long rows = box.y1 > box.y0 && box.z1 > box.z0 ? (long)(box.y1 - box.y0) * (box.z1 - box.z0) : 0;
    update_now(device, box, shell);
    *(shell ? &ns : &left) += rows * device->part.nx;
}
void device_wait(struct device *device) {
    (void)device;
    pass(left);
}
float *device_take(struct device *device, enum side side) {
    pass(1000);
    return take_now(device, side);
}
void device_put(struct device *device, enum side side) {
    pass(1000);
    put_now(device, side);
}
END
check "a device that works by itself" mpicc.openmpi -O2 -Wall -Wextra -Werror -Dclock_gettime=clock_of_device -I"$source" \
    -o stencil "$source/stencil.c" other.c -lm
for overlap in no yes; do
    check "with overlap: $overlap" run 1 lbm 10,12,14 1,1 5 $overlap
    is "it takes a nanosecond a point" "$(grep -o ' compute [0-9.]*' .out)" " compute 0.000001680"
    is "the fastest step is the mean of equal steps" "$(sed -n 's/^least //p' .out)" "$(sed -n 's/^\(step .*\) compute \(.*\) exchange .*/\1 computing \2 s/p' .out)"
    cp .out $overlap
done
step() { sed -n 's/^step 0.0*\([0-9]*\) .*/\1/p' "$1"; }
is "as long as the exchange takes, less is to wait for with overlap" "$(step no) $(step yes)" "9680 8480"
if PATH=$PATH:/usr/local/cuda/bin command -v nvcc >where; then
    check "the part for GPUs builds" env device=cuda mpicc=mpicc.openmpi flags=-O2 nvcc_flags= sh -c 'cp "$0"/* . && sh build.sh' "$source"
    if nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
        for overlap in no yes; do
            check "and runs (overlap: $overlap)" run 2 lbm 12,12,12 1,2 5 $overlap
            is "and is what the reference says" "$(is_below "$(difference)" 1e-5) $(is_below "$(mass)" 1e-7)" "1 1"
        done
    else refuse "and says that there is none" 1 'stencil: rank 0: a GPU: ' run 1 lbm 12,12,12 1,1 5 no; fi
else skip "the part for GPUs builds" "no nvcc here"; fi

memory_of() { # memory_of FACTORS: what a plan of them is checked for
    echo "{experiment: stencil, design: {factors: {problem: [diffusion], ranks: [1], nx: [512], ny: [510], nz: [510]${1:-}}}}" >plan.yaml
    "$ASSAY" run --dry-run plan.yaml 2>&1 | sed -nE 's/^Memory: (.*) a process.*/\1/p; s/.* needs ([0-9.]+ GiB) of memory .*/\1/p'
}
is "memory is checked for the lattice, or for the diffusion alone" "$(memory_of) $(memory_of ', values: [1]')" "28.6 GiB 1.56 GiB"

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
