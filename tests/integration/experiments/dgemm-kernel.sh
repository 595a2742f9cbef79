# The dgemm kernel by itself: protocol, call, content, refusals. A BLAS of the test's own looks at every call.
. "$(dirname "$0")/../tap.sh"

kernel=$scratch/dgemm
cd "$ASSAY_SOURCE/experiments/kernels" || exit 1
check "the kernel builds with nothing but a C compiler" cc -O2 -Wall -Wextra -Werror -o "$kernel" \
    blas.c blas-call.c blas-check.c blas-library.c buffer.c processor.c rows.c settings.c -ldl
cd "$scratch" || exit 1
[ -x "$kernel" ] || finish

# Naive, and it writes down what it was called with. WRONG=1 makes it miscount.
cat >"$scratch/spy.c" <<'END'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void note(const char *format, const void *a, const void *b, const void *c, int single) {
    FILE *log = fopen(getenv("SPY_LOG"), "a");
    uint64_t bits = 0;
    memcpy(&bits, a, single ? 4 : 8);
    fprintf(log, format, (unsigned long long)bits, (unsigned long)(uintptr_t)a, (unsigned long)(uintptr_t)b,
            (unsigned long)(uintptr_t)c);
    fclose(log);
}
#define GEMM(NAME, TYPE, SINGLE)                                                                            \
    void NAME(const char *ta, const char *tb, const int *m, const int *n, const int *k, const TYPE *alpha,    \
              const TYPE *a, const int *lda, const TYPE *b, const int *ldb, const TYPE *beta, TYPE *c,        \
              const int *ldc, size_t ta_length, size_t tb_length) {                                          \
        char format[200];                                                                                    \
        snprintf(format, sizeof format, "%c%c%zu%zu m=%d n=%d k=%d lda=%d ldb=%d ldc=%d alpha=%g beta=%g "  \
                 "bits=%%016llx a=%%lu b=%%lu c=%%lu\n", *ta, *tb, ta_length, tb_length, *m, *n, *k, *lda,  \
                 *ldb, *ldc, (double)*alpha, (double)*beta);                                                 \
        note(format, a, b, c, SINGLE);                                                                       \
        for (int j = 0; j < *n; j++)                                                                         \
            for (int i = 0; i < *m; i++)                                                                     \
                for (int l = 0; l < *k; l++)                                                                 \
                    c[i + j * (size_t)*ldc] += *alpha * a[i + l * (size_t)*lda] * b[j + l * (size_t)*ldb] +  \
                                               (getenv("WRONG") ? 1 : 0);                                    \
    }
GEMM(dgemm_, double, 0)
GEMM(sgemm_, float, 1)
END
cc -O2 -shared -fPIC -o "$scratch/spy.so" "$scratch/spy.c" || finish
export SPY_LOG=$scratch/spy.log

header=unit,m,n,k,lda,ldb,ldc
sizes="--a-elements 1000000 --b-elements 1000000 --c-elements 1000000"
# shellcheck disable=SC2086 # sizes are words
feed() { # feed ROWS [OPTIONS]: runs the kernel on the rows (printf's escapes)
    local rows=$1; shift
    : >"$SPY_LOG"
    printf "$rows" | "$kernel" $sizes "$@"
}
spied() { feed "$header\n1,3,4,5,6,7,8\n2,30,4,5,60,7,80\n" --blas "$scratch/spy.so" "$@"; }
calls() { sed 1d "$SPY_LOG"; } # the first one is the kernel's own check

# ---- The protocol ----
before=$(date +%s%N)
feed "$header\n7,64,32,16,64,32,64\n5,8,8,8,8,8,8\n" >"$scratch/answers"
after=$(date +%s%N)
check "facts come first, as '#name: value'" sh -c 'sed -n 1p "$1" | grep -qE "^#blas: openblas$"' - "$scratch/answers"
for name in blas_library threads precision content mask_bits seed matrix_bytes memory_policy page_bytes cpu; do
    check "the fact $name is told" grep -qE "^#$name: .+" "$scratch/answers"
done
grep -v '^#' "$scratch/answers" >"$scratch/lines"
check "then a header" test "$(sed -n 1p "$scratch/lines")" = unit,start,start_monotonic,duration
check "then one line a row, in the order given" test "$(sed 1d "$scratch/lines" | cut -d, -f1 | paste -sd' ')" = "7 5"
check "start in whole ns since the epoch, duration in seconds with nine decimals" \
    sh -c '[ "$(grep -cE "^[75],[0-9]{19},[0-9]+,[0-9]+\.[0-9]{9}$" "$1")" -eq 2 ]' - "$scratch/lines"
check "start is now" awk -F, -v from="$before" -v to="$after" 'NR > 1 && ($2 < from || $2 > to) { exit 1 }' "$scratch/lines"
check "columns may come in another order" test \
    "$(feed "k,unit,m,n,ldc,lda,ldb\n5,9,3,4,8,6,7\n" --blas "$scratch/spy.so" | tail -n 1 | cut -d, -f1
    calls | cut -d' ' -f2-7)" = "$(printf '9\nm=3 n=4 k=5 lda=6 ldb=7 ldc=8')"
check "lines may end in CRLF" feed "$header\r\n1,2,2,2,2,2,2\r\n"
check "no rows is no error" feed "$header\n"
mkfifo "$scratch/row-fifo" "$scratch/answer-fifo"
"$kernel" --a-elements 100 --b-elements 100 --c-elements 100 <"$scratch/row-fifo" >"$scratch/answer-fifo" 2>"$scratch/kernel.err" &
kernel_pid=$!
exec 4>"$scratch/row-fifo" 5<"$scratch/answer-fifo"
echo "$header" >&4
answered=0
for unit in 1 2 3; do
    echo "$unit,4,4,4,4,4,4" >&4
    while read -r -t 120 line <&5; do
        case $line in $unit,*) answered=$((answered + 1)); break ;; esac
    done
done
exec 4>&- 5<&-
wait "$kernel_pid"
check "each row is answered at once, before the next one comes" test "$answered" -eq 3

# ---- The call ----
spied >/dev/null
check "the call is HPL's update: A as it is, B transposed, alpha -1, beta 1" \
    test "$(calls | grep -c '^NT11 .* alpha=-1 beta=1 ')" -eq 2
check "sizes and leading dimensions arrive" \
    test "$(calls | sed -n 2p | cut -d' ' -f2-7)" = "m=30 n=4 k=5 lda=60 ldb=7 ldc=80"
rows=$header'\n'$(for i in $(seq 200); do printf '%d,2,2,2,2,2,2\\n' "$i"; done)
feed "$rows" --blas "$scratch/spy.so" --offset-range 1000 >/dev/null
check "each call starts elsewhere in each buffer, within the range" sh -c '
    sed 1d "$1" | sed "s/.* a=\([0-9]*\) b=\([0-9]*\) c=\([0-9]*\)/\1 \2 \3/" | awk "
        { for (i = 1; i <= 3; i++) { seen[i, \$i]++ || distinct[i]++
              if (NR == 1 || \$i < low[i]) low[i] = \$i; if (\$i > high[i]) high[i] = \$i } }
        END { for (i = 1; i <= 3; i++) if (distinct[i] < 150 || high[i] - low[i] > 8000) exit 1 }"' - "$SPY_LOG"
feed "$rows" --blas "$scratch/spy.so" --offset-range 0 >/dev/null
check "a range of 0 keeps the same place" \
    test "$(calls | sed 's/.* a=//' | sort -u | wc -l)" -eq 1

# ---- Content ----
first_bits() { spied --offset-range 0 "$@" >/dev/null || return; calls | sed -n '1s/.*bits=\([0-9a-f]*\).*/\1/p'; }
check "constant content" test "$(first_bits --content constant --value 1.5)" = 3ff8000000000000
spied_bits() { feed "$header,content,value,mask\n1,3,4,5,6,7,8,constant,1.5,0\n2,3,4,5,6,7,8,constant,1.5,12\n" --blas "$scratch/spy.so"; }
check "content may be a column of the rows" spied_bits
cp "$scratch/.out" "$scratch/answers"
check "... each row has its own" test "$(calls | sed 's/.*bits=\([0-9a-f]*\).*/\1/' | xargs)" = "3ff8000000000000 3ff8000000000fff"
check "... and the facts say so" grep -qx '#content: a factor' "$scratch/answers"
feed "$header,before\n1,3,4,5,6,7,8,3\n" --blas "$scratch/spy.so" >"$scratch/answers"
check "calls before the one that is timed are at its place" test "$(calls | sort -u | wc -l) $(calls | wc -l)" = "1 4"
check "the mask sets low bits to one" test "$(first_bits --content constant --value 1.5 --mask 12)" = 3ff8000000000fff
check "a mask of 53 bits reaches the exponent" test "$(first_bits --content constant --value 1.5 --mask 53)" = 3fffffffffffffff
check "a mask of 0 changes nothing" test "$(first_bits --content constant --mask 0)" = 3fef95810624dd2f
check "single precision" test "$(first_bits --precision single --content constant --value 1.5 --mask 4)" = 000000003fc0000f
check "sequential content begins at 0" test "$(first_bits --content sequential)" = 0000000000000000
check "random content lies in [0, 1)" test "$(first_bits | cut -c1-2)" = 3f
content=$(first_bits --seed 5)
check "the same seed gives the same content" test -n "$content" -a "$(first_bits --seed 5)" = "$content"
check "another seed gives another" test "$(first_bits --seed 5)" != "$(first_bits --seed 6)"

# ---- Real libraries ----
for blas in openblas blis reference mkl; do
    for precision in double single; do
        name="$blas computes a right product in $precision"
        if "$kernel" --check --blas $blas --precision $precision >"$scratch/facts" 2>"$scratch/facts.err"; then
            check "$name" grep -q "^#blas_library: /" "$scratch/facts"
        elif [ $blas != openblas ] && grep -q "cannot load BLAS" "$scratch/facts.err"; then skip "$name" "$blas is not installed"
        else is "$name" "$(cat "$scratch/facts.err")" ""; fi
    done
done
check "threads are what was asked for" sh -c '"$1" --check --threads 1 | grep -qx "#threads: 1"' - "$kernel"

# ---- Refusals ----
refuse "a BLAS that is nowhere" 3 "cannot load BLAS '/nonexistent/libblas.so': .*No such file" \
    "$kernel" --check --blas /nonexistent/libblas.so
if ! "$kernel" --check --blas mkl >/dev/null 2>&1; then
    refuse "a known BLAS that is not installed: what was tried and where it is" 3 \
        "cannot load BLAS 'mkl': tried libmkl_rt.so.2, .*; Debian has it in the package libmkl-rt" "$kernel" --check --blas mkl
else skip "a known BLAS that is not installed" "MKL is installed"; fi
refuse "an unknown BLAS" 2 "expected openblas, blis, reference, mkl, or a path" "$kernel" --check --blas atlas
refuse "a library that is no BLAS" 3 "the library has no dgemm_" "$kernel" --check --blas "$(ldd "$kernel" | awk '/libc\./ { print $3 }')"
refuse "a BLAS that computes wrong results" 3 "computes wrong results: element 0 of a small dgemm" \
    env WRONG=1 "$kernel" --check --blas "$scratch/spy.so"
bad_row() { refuse "$1" 2 "$2" feed "$header\n1,8,8,8,8,8,8\n$3\n"; }
bad_row "lda below m" "line 3: lda = 7 is smaller than 8, the rows of A" 2,8,8,8,7,8,8
bad_row "ldb below n" "line 3: ldb = 7 is smaller than 8, the rows of B" 2,8,8,8,8,7,8
bad_row "ldc below m" "line 3: ldc = 7 is smaller than 8, the rows of C" 2,8,8,8,8,8,7
bad_row "a matrix larger than the buffers" "line 3: the matrix A needs 1002000 elements; expected at most --a-elements 1000000" \
    2,1000,8,1002,1000,8,1000
bad_row "a short row" "line 3 has 6 fields; expected 7" 2,8,8,8,8,8
bad_row "a long row" "line 3 has 8 fields; expected 7" 2,8,8,8,8,8,8,8
bad_row "trailing junk" "line 3: m '8x' is not a whole number from 1 to 2147483647" 2,8x,8,8,8,8,8
bad_row "a size of zero" "line 3: k '0' is not a whole number from 1" 2,8,8,0,8,8,8
bad_row "a size beyond 32 bits" "line 3: n '4294967296' is not" 2,8,4294967296,8,8,8,8
bad_row "a negative size" "line 3: m '-8' is not" 2,-8,8,8,8,8,8
bad_row "a NUL" "line 3 holds a NUL" '2,8\0,8,8,8,8,8'
bad_row "a blank line" "line 3 has 1 fields" ""
bad_row "a line without end" "line 3 is longer than 1024 bytes" "$(head -c 2000 /dev/zero | tr '\0' 1)"
refuse "a row that is cut off" 2 "the input ends inside line 2" feed "$header\n1,8,8,8,8,8,1"
refuse "no header" 2 "expected the header unit,m,n,k" feed ""
refuse "a header that lacks a column" 2 "line 1 is not a header .*missing: ldc" feed "unit,m,n,k,lda,ldb\n"
refuse "a header with a column too many" 2 "line 1 has 8 columns; the column 'colour' is not known" feed "$header,colour\n"
refuse "a header with a column twice" 2 "line 1 has the column m twice" feed "$header,m\n"
refuse "sizes that do not fit in memory" 1 "cannot allocate 9007199262740992 bytes for matrix A" \
    "$kernel" --a-elements 1125899906842624 --b-elements 1 --c-elements 1
refuse "missing sizes" 2 "--a-elements is missing" "$kernel"
refuse "a mask beyond the significand" 2 "--mask '54' is not a whole number from 0 to 53" "$kernel" --mask 54
refuse "a mask beyond a single's" 2 "expected at most 24" "$kernel" --check --precision single --mask 25
refuse "a value that would overflow C" 2 "--value '1e200' is not a number from -1e\+06 to 1e\+06" "$kernel" --value 1e200
refuse "an unknown content" 2 "--content 'zero' is not known; expected random or sequential or constant" "$kernel" --content zero
refuse "an unknown option" 2 "unknown option '--size'" "$kernel" --size 5
refuse "answers that cannot be written" 1 "cannot write answers: No space left" sh -c '"$1" --check >/dev/full' - "$kernel"

# ---- What lies between two rows: measured, noted, and not judged here ----
{ echo $header; awk 'BEGIN { for (i = 1; i <= 10000; i++) print i ",8,8,8,8,8,8" }'; } >"$scratch/rows"
"$kernel" --a-elements 64 --b-elements 64 --c-elements 64 <"$scratch/rows" | grep -v '^[#u]' >"$scratch/many"
check "10,000 rows are answered" test "$(wc -l <"$scratch/many")" -eq 10000
awk -F, '{ start = $3 + 0; if (NR > 1) print start - end; end = start + $4 * 1e9 }' "$scratch/many" | sort -n |
    awk '{ gap[NR] = $1 } END { printf "# gap between two rows: median %.1f us, 99%% below %.1f us\n",
        gap[int((NR + 1) / 2)] / 1e3, gap[int(NR * 0.99)] / 1e3 }'
finish
