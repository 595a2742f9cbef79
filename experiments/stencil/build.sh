#!/bin/sh
# Setup: makes ./stencil for the option 'device', and prints what it is made of. The options are in the environment:
# device, mpicc, flags, nvcc_flags.
set -eu
fail() {
    echo "stencil: $*" >&2
    exit 1
}

PATH=$PATH:/usr/local/cuda/bin # where NVIDIA's packages have it
if [ "$device" = auto ]; then
    device=cpu
    if command -v nvcc >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then device=cuda; fi
fi
# shellcheck disable=SC2086 # flags are several words
if [ "$device" = cuda ]; then
    command -v nvcc >/dev/null || fail "there is no nvcc here, expected NVIDIA's CUDA toolkit, or --set device=cpu"
    nvcc -O3 $nvcc_flags -c -o device.o device-cuda.cu
    "$mpicc" $flags -c -o stencil.o stencil.c
    # nvcc knows where its library is.
    nvcc $nvcc_flags -ccbin "$mpicc" ${flags:+-Xcompiler "$flags"} -o stencil stencil.o device.o -lstdc++ -lm
    echo "stencil nvcc: $(nvcc --version | sed -n 's/.*release //p')"
else
    "$mpicc" $flags -o stencil stencil.c device-cpu.c -lm
fi
echo "stencil build: $device, $("$mpicc" -show) $flags"
