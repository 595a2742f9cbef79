# An installed tree works where the build tree is not needed, also after it was moved, and ASSAY_PATH adds to it.
. "$(dirname "$0")/../tap.sh"

check "cmake --install" cmake --install "$ASSAY_BUILD" --prefix "$scratch/first"
mv "$scratch/first" "$scratch/prefix"
assay=$scratch/prefix/bin/assay
for file in libexec/assay/assay-agent lib/assay/plugins/fit-linear.so lib/assay/plugins/predict-hpl.so \
    share/assay/experiments/dgemm/experiment.yaml share/assay/experiments/kernels/blas.c share/man/man1/assay-run.1 \
    share/man/man7/assay-campaign.7 share/assay/manual/campaign.md share/bash-completion/completions/assay \
    share/zsh/site-functions/_assay; do
    check "installed: $file" test -s "$scratch/prefix/$file"
done
check "nothing installed points into the build tree" sh -c '[ -z "$(find "$1" -type l)" ]' - "$scratch/prefix"

cat >"$scratch/campaign.yaml" <<'END'
experiment: dgemm
design: {generate: uniform-product, factors: [m, n, k], max-product: 1e4, max-size: 60, order: as-written}
END
check "its experiments are found" "$assay" run --dry-run "$scratch/campaign.yaml"
cp "$scratch/.out" "$scratch/plan"
check "... under its own prefix" grep -qF "$scratch/prefix/share/assay/experiments/kernels" "$scratch/plan"
check "its references are found" sh -c '"$1" help campaign | cmp - "$2"' - "$assay" "$ASSAY_SOURCE/engine/run/campaign/README.md"
check "its templates are found" "$assay" experiments new mine -o "$scratch/new"

printf 'size,duration\n' >"$scratch/calls.csv"
awk 'BEGIN { for (i = 1; i <= 50; i++) printf "%d,%.3f\n", i, 2 + 3 * i + i % 3 / 10 }' >>"$scratch/calls.csv"
check "its plugins are found" "$assay" fit linear "$scratch/calls.csv" --response duration --terms 1+size
refuse "a plugin that is not there: the nearest is named" 2 "did you mean 'fit-linear'|did you mean 'linear'" \
    "$assay" fit lineer "$scratch/calls.csv" --response duration --terms 1+size

mkdir -p "$scratch/mine/experiments/sleepy" "$scratch/empty"
cat >"$scratch/mine/experiments/sleepy/experiment.yaml" <<'END'
name: sleepy
summary: prints a number
factors:
  size: {type: integer, minimum: 1, maximum: 9}
responses:
  answer: {unit: "1", pattern: 'answer ([0-9]+)'}
run: 'echo answer $size'
END
cat >"$scratch/sleepy.yaml" <<'END'
experiment: sleepy
design: sizes.csv
END
printf 'size\n1\n2\n3\n' >"$scratch/sizes.csv"
refuse "without ASSAY_PATH there is no such experiment" 2 "no experiment 'sleepy'" \
    "$assay" run "$scratch/sleepy.yaml" -o "$scratch/runs"
check "with it, and with the installed agent, it runs" \
    env ASSAY_PATH="$scratch/empty:$scratch/mine" "$assay" run "$scratch/sleepy.yaml" -o "$scratch/runs"
archive=$(tail -n 1 "$scratch/.out")
check "its archive is whole" "$assay" archive verify "$archive"
check "its answers are there" sh -c '[ "$("$1" archive cat "$2" results/results.csv | wc -l)" -eq 4 ]' - "$assay" "$archive"
finish
