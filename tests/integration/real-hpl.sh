# A real HPL for tests: sourced after tap.sh, sets $xhpl to a program that was built with experiments/hpl/build.sh, and
# $hpl_source to what it was built of, a tree in netlib's layout; or skips the test.
#
# Debian has no package of HPL, but the source of its package hpcc has HPL 2.0 inside, whose driver was changed to be a
# part of that suite: it is changed back here. It is fetched once, with apt and the machine's own mirrors, into the
# build tree. HPL 2.1 and later report the progress of panels; the same lines are added to the loop without look-ahead.
hpl_source=$ASSAY_BUILD/tests/hpl-2.0 xhpl=$ASSAY_BUILD/tests/xhpl-2.0/xhpl

hpl_fetch() { # hpl_fetch FOLDER: leaves hpcc_1.5.0.orig.tar.gz there
    mkdir -p "$1/parts" "$1/lists/partial"
    sed 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' /etc/apt/sources.list.d/debian.sources >"$1/parts/debian.sources" || return
    local apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$1/parts"
        -o "Dir::State::lists=$1/lists" -o APT::Sandbox::User=root)
    "${apt[@]}" update && (cd "$1" && "${apt[@]}" source --download-only --tar-only hpcc) &&
        sha256sum -c --quiet - <<<"0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8  $1/hpcc_1.5.0.orig.tar.gz"
}

hpl_unpack() { # hpl_unpack FOLDER: what was fetched there, as netlib's tree FOLDER/hpl-2.0
    tar xzf "$1/hpcc_1.5.0.orig.tar.gz" -C "$1" && mkdir "$1/hpl-2.0" || return
    mv "$1"/hpcc-1.5.0/hpl/{include,src,testing} "$1/hpl-2.0" && cd "$1/hpl-2.0" || return
    sed -i 's/MPI_Address/MPI_Get_address/; s/MPI_Type_struct/MPI_Type_create_struct/' src/*/*.c
    sed -i 's/hpccinf.txt/HPL.dat/; /fid = 8;/d; /"hpccoutf.txt"/d' testing/ptest/HPL_pdinfo.c
    sed -i '/^ *HPL_pdpanel_init(/i\#ifdef HPL_PROGRESS_REPORT\
      if (j == 0) since = HPL_timer_walltime();\
      else if (GRID->myrow == 0 && GRID->mycol == 0) {\
         double done = 2.0 / 3.0 * ((double)N * N * N - (double)n * n * n);\
         HPL_fprintf(stdout, "Column=%09d Fraction=%4.1f%% Gflops=%9.3e\\n", j, j * 100.0 / N,\
                     done / (HPL_timer_walltime() - since + 1e-9) / 1e9);\
      }\
#endif
    s/^   HPL_T_UPD_FUN /   double since = 0;\n&/' src/pgesv/HPL_pdgesv0.c
    cat >testing/ptest/main.c <<'C'
#include "hpl.h"
int HPL_main(int, char **, HPL_RuntimeData *, int *);
void HPCC_Defaults(void) { MPI_Abort(MPI_COMM_WORLD, 1); }
int main(int argc, char **argv) {
    HPL_RuntimeData data = {0};
    int failure = 0;
    MPI_Init(&argc, &argv);
    HPL_main(argc, argv, &data, &failure);
    return MPI_Finalize();
}
C
}

exec {hpl_lock}>"$ASSAY_BUILD/tests/hpl.lock"
flock "$hpl_lock" # what another test builds now is waited for
if [ ! -d "$hpl_source" ]; then
    fetched=$(mktemp -d "$ASSAY_BUILD/tests/hpl-fetch.XXXXXX")
    (hpl_fetch "$fetched" && hpl_unpack "$fetched") >"$scratch/fetch" 2>&1 || {
        sed 's/^/# /' "$scratch/fetch"; rm -rf "$fetched"
        plan_skip "HPL's source cannot be fetched"
    }
    mv -T "$fetched/hpl-2.0" "$hpl_source"
    rm -rf "$fetched"
fi
if [ ! -x "$xhpl" ]; then # -O1: it calls BLAS for what takes long
    built=$(mktemp -d "$ASSAY_BUILD/tests/xhpl-2.0.XXXXXX")
    (cd "$built" && hpl=$hpl_source mpicc=mpicc blas=-l:libopenblas.so.0 flags=-O1 panel_times=yes dgemm=no \
        sh "$ASSAY_SOURCE/experiments/hpl/build.sh") >"$scratch/build" 2>&1 || {
        sed 's/^/# /' "$scratch/build"
        report 1 "HPL is built from its source"; finish
    }
    rm -rf "$built/objects"
    mv -T "$built" "${xhpl%/xhpl}"
fi
exec {hpl_lock}>&-
