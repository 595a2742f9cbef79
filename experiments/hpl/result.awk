# Passes HPL's output on, and ends it with one line that says the result in one way, whichever HPL printed it:
#
#     assay: time=12.1 rate=73.5 residual=0.0043 passed=yes dgemm_rate=... efficiency=...
#
# Lines may have a prefix or mpirun's stamps inside; AMD's HPL has a column SWP before N, NVIDIA's a rate a GPU at the
# end. So the result is six numbers in a row, the fifth with a point and the sixth with an exponent.
BEGIN { result = " [0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+[.][0-9]+ +[0-9]+[.]?[0-9]*[eE][-+]?[0-9]+" }
function fail(sentence) {
    print "hpl: " sentence > "/dev/stderr"
    failed = 1
    exit 1
}
/^hpl-rank: status / { status = $3; ended = 1; next }
{ print; fflush() }
match($0, /dgemm_rate=[^ ]*/) { dgemm_rate = substr($0, RSTART + 11, RLENGTH - 11) + 0 }
/[Ss]kip[.]?$|ERROR|>>> .* <<</ { reason = $0; gsub(/.*>>> | <<<.*/, "", reason); reason = "; it says '" reason "'" }
/W[RC][0-9]/ && match($0, result) {
    results++
    split(substr($0, RSTART, RLENGTH), column, " ")
    if (match($0, /W[RC][0-9]+[67][LCR]/))
        fail("broadcast " substr($0, RSTART + RLENGTH - 2, 1) " is a vendor's own, expected 0 to 5, which netlib's HPL has")
}
/Ax-b.*[.][.][.][.][.][.]/ {
    checks++
    if (!/PASSED/) wrong = 1
    before = $0
    sub(/ *[.][.][.][.][.][.].*/, "", before)
    sub(/.*[ =]/, "", before)
    if (checks == 1 || before + 0 > residual + 0) residual = before
}
END {
    if (failed) exit 1
    if (!ended || status != 0) exit status != 0 ? status : 1
    if (results != 1) fail("HPL's output has " (results + 0) " results, expected one" reason)
    N = column[1]; time = column[5]; rate = column[6]
    ranks = column[3] * column[4]
    # Time has two decimals and Gflops four or five digits: whichever has more says both, so that they agree.
    flops = (2 / 3 * N + 3 / 2) * N * N / 1e9
    if (time < 100) time = flops / rate
    else rate = flops / time
    efficiency = dgemm_rate > 0 ? rate / (ranks * dgemm_rate) : 0
    printf "assay: time=%.9g rate=%.9g residual=%s passed=%s dgemm_rate=%.6g efficiency=%.6g\n", time, rate, \
        checks ? residual : "nan", !checks ? "unchecked" : wrong ? "no" : "yes", dgemm_rate, efficiency
}
