#!/bin/sh
# Setup: makes ./xhpl for SMPI of HPL's sources, as they are, and of kernels.c with the models of a header; and platform-hosts.
# The options hpl and kernels are in the environment.
set -eu
fail() {
    echo "hpl-smpi: $*" >&2
    exit 1
}
[ -f "$kernels" ] || fail "'$kernels' is no file, expected --set kernels=PATH, the header of 'assay export kernels dgemm=MODEL'"
rm -rf objects source
source=$hpl
if [ -f "$hpl" ]; then
    mkdir source
    tar -xf "$hpl" -C source --strip-components=1
    source=$PWD/source
fi
[ -d "$source/testing/ptest" ] || fail "'$hpl' is no HPL, expected its folder in netlib's layout, or an archive of that (--set hpl=PATH)"
sha256sum "$kernels"
cp "$kernels" kernels.h

# What each kernel takes, in the words of kernels.c: as the header says; dtrsm without a model is half of dgemm, which has
# twice its operations; others without one take no time.
awk '/^static inline double assay_[a-z0-9_]+_mean\(/ {
        kernel = $4; sub(/^assay_/, "", kernel); sub(/_mean.*/, "", kernel)
        over = $0; sub(/^[^,]*/, "", over); sub(/\).*/, "", over); gsub(/double x_/, "", over); call[kernel] = over
    }
    END {
        if (!("dgemm" in call)) { print "hpl-smpi: the header has no model called dgemm" > "/dev/stderr"; exit 1 }
        known_all = "dgemm dtrsm dgemv dger dtrsv dswap dcopy daxpy dscal idamax dlacpy dlatcpy dlaswp"
        count = split(known_all, known)
        for (i = 1; i <= count; i++) {
            x = known[i]; model = x in call ? x : "dgemm"; times = x in call ? 1 : x == "dtrsm" ? 0.5 : 0
            if (times) {
                printf "#define MEAN_%s(group) %s * assay_%s_mean(group%s)\n", x, times, model, call[model]
                printf "#define DRAW_%s(group, z) %s * assay_%s_draw(group%s, z)\n", x, times, model, call[model]
            } else printf "#define MEAN_%s(group) 0\n#define DRAW_%s(group, z) 0\n", x, x
            if (model != x) printf "#define assay_%s_group assay_dgemm_group\n", x
            seen[x] = 1
        }
        for (x in call) if (!(x in seen)) { print "hpl-smpi: HPL calls no " x ", expected models of: " known_all > "/dev/stderr"; exit 1 }
    }' kernels.h >calls.h

mkdir objects
ls "$source"/src/*/*.c "$source"/testing/p[!m]*/*.c "$source"/testing/timer/*.c | grep -v '/src/blas/\|_dlaswp...\.c\|_dla[a-z]*cpy\.c' |
    (cd objects && xargs -n 24 -P "$(getconf _NPROCESSORS_ONLN)" smpicc -w -O1 -DHPL_CALL_CBLAS -I"$source/include" -c)
smpicc -O1 -include ./kernels.h -include ./calls.h -c kernels.c -o objects/kernels.o
smpicc -Wl,--wrap=HPL_ptimer_combine -o xhpl objects/*.o -lm
g++ -O1 -o platform-hosts platform-hosts.cpp -lsimgrid
smpicc --version
