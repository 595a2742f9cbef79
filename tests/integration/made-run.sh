# Archives of runs that need no kernel: sourced after tap.sh.
#
#   made_dgemm NAME OVERHEAD COST [EXPERIMENT]   runs NAME.yaml, of the experiment dgemm unless it is called otherwise: 12 calls
#                         that are said to take OVERHEAD s and COST s a mnk, give or take 0.3 %; prints the archive's path
made_dgemm() {
    cat >"$1.yaml" <<YAML
name: $1
testbed: local
probes: none
experiment:
  name: ${4:-dgemm}
  factors: {m: {type: integer}, n: {type: integer}, k: {type: integer}}
  responses: {duration: {pattern: 'took ([0-9.e-]+)', unit: s}}
  run: "awk -v m=\$m -v n=\$n -v k=\$k 'BEGIN { printf \\"took %.12f\\\\n\\", $2 + $3 * m * n * k * (1 + (m + n + k) % 7 / 1000) }'"
  model: {method: linear, response: duration, terms: '1+m*n*k', sizes: [m, n, k]}
design: {generate: factorial, factors: {m: [20, 400], n: [30, 500], k: [10, 60, 200]}}
YAML
    "$ASSAY" run "$1.yaml" -q -o runs
}
