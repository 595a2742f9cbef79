#!/bin/sh
# Setup: makes ./xhpl of what the option 'hpl' names, and ./dgemm-rate.so, and prints what they are made of. The options
# are in the environment: hpl, hpl_patch, mpicc, blas, flags, panel_times, trace, dgemm.
set -eu
fail() {
    echo "hpl: $*" >&2
    exit 1
}

build() { # build FOLDER: a source tree in netlib's layout
    defines=
    [ "$panel_times" = no ] || defines="-DHPL_PROGRESS_REPORT -DHPL_DETAILED_TIMING"
    mkdir objects
    # shellcheck disable=SC2086 # flags are several words
    (cd objects && printf '%s\0' "$1"/src/*/*.c "$1"/testing/*/*.c |
        xargs -0 -n 16 -P "$(nproc)" "$mpicc" -w $flags $defines -DAdd_ -DF77_INTEGER=int -DStringSunStyle -I"$1/include" -c)
    # shellcheck disable=SC2086
    "$mpicc" $flags -o xhpl objects/*.o $blas -lm
    echo "hpl source: $hpl"
    echo "hpl build: $("$mpicc" -show) $flags $defines $blas"
    echo "hpl compiler: $("$mpicc" --version | head -n 1)"
}

rm -rf objects source xhpl hpcc
hpl_patch=${hpl_patch:-none}
is_source() { [ -d "$1/src" ] && [ -d "$1/testing/ptest" ]; }
if [ "$hpl" = hpcc ]; then
    ln -s "$(command -v hpcc)" hpcc || fail "there is no program hpcc here, expected Debian's package 'hpcc', or --set hpl=PATH"
elif is_source "$hpl"; then
    cp -R "$hpl" source
elif [ -x "$hpl/bin/xhpl" ]; then ln -s "$hpl/bin/xhpl" xhpl
elif [ -f "$hpl" ] && [ -x "$hpl" ]; then ln -s "$hpl" xhpl
elif [ -f "$hpl" ]; then
    mkdir source
    tar xf "$hpl" -C source --strip-components=1 || fail "'$hpl' is neither a program nor a tar archive"
    is_source source || fail "'$hpl' does not hold HPL's source in netlib's layout"
else fail "'$hpl' is not there, expected a program, a folder with bin/xhpl, a source tree, a tar archive of one, or git+URL"; fi
if [ -d source ]; then
    if [ "$hpl_patch" != none ]; then
        patch -d source -p1 <"$hpl_patch" || fail "'$hpl_patch' cannot be applied to HPL's source by 'patch -p1'"
    fi
    build "$PWD/source"
elif [ "$hpl_patch" != none ]; then fail "hpl_patch needs HPL's source, and '$hpl' is a program"; fi

program=xhpl
[ -e xhpl ] || program=hpcc
[ "$dgemm" = no ] || "$mpicc" -O2 -fPIC -shared -o dgemm-rate.so dgemm-rate.c -ldl ||
    fail "what measures dgemm cannot be built with '$mpicc', expected a compiler of the MPI that $program uses, or --set dgemm=no"
[ "${trace:-no}" = no ] || "$mpicc" -O2 -fPIC -shared -o libassay-trace.so trace/trace.c -ldl ||
    fail "what traces calls cannot be built with '$mpicc', expected a compiler of the MPI that $program uses, or --set trace=no"
# What decides how fast it is, and one hash of it all: programs with the same key are the same.
libraries=$(ldd $program | awk '/=> \// && /libmpi|blas|libmkl|libblis|libflexiblas|libarmpl|libessl/ {print $3}')
{
    sha256sum "$(readlink -f $program)"
    for library in $libraries; do sha256sum "$(readlink -f "$library")"; done
} | tee key
echo "hpl key: $(sha256sum <key | cut -c1-64)"
