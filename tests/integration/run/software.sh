#!/bin/bash
# Where an experiment's software comes from besides packages: modules (a real Lmod), Spack, a container, a prefix; and
# the record of what ran, with its libraries.
. "$(dirname "$0")/../tap.sh"
. "$ASSAY_SOURCE/tests/test-bed/test-bed.sh"
command -v cc >/dev/null || plan_skip "no C compiler"
test -r /etc/profile.d/lmod.sh || plan_skip "no Lmod"
blas=$(ldconfig -p | sed -n 's/.*libopenblas\.so\.0 .*=> //p' | head -1)
test -n "$blas" || plan_skip "no OpenBLAS"
cat_of() { "$ASSAY" archive cat "$1" "$2"; }
member() { cat_of "$archive" software/versions.json; }
measure() { archive=$("$ASSAY" run "$@" -q -o "$scratch/runs" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"; }

# ---- a module whose tool makes a constant, a prefix with a library, and BLAS, in one program ---------------------
mkdir -p "$scratch/modulefiles/constant" "$scratch/constant/bin" "$scratch/prefix/"{bin,include,lib,lib/pkgconfig}
cat >"$scratch/modulefiles/constant/1.5.lua" <<L
prepend_path("PATH", "$scratch/constant/bin")
setenv("CONSTANT_UNIT", "a \"b\"; \$(touch pwned) '{n}'")
setenv("LICENSE_KEY", "hush-hush")
unsetenv("SITE_LEFTOVER")
L
# shellcheck disable=SC2016 # the tool's own
printf '#!/bin/sh\necho "#define CONSTANT $1" >constant.h\nprintenv\n' >"$scratch/constant/bin/make-constant"
printf '#!/bin/sh\nexec "$@"\n' >"$scratch/prefix/bin/in-prefix"
chmod +x "$scratch/constant/bin/make-constant" "$scratch/prefix/bin/in-prefix"
echo 'double twice(double x);' >"$scratch/prefix/include/twice.h"
printf 'double twice(double x) { return 2 * x; }\n' | cc -shared -fPIC -o "$scratch/prefix/lib/libtwice.so" -xc -
mkdir "$scratch/product"
cat >"$scratch/product/product.c" <<'C'
#include "constant.h"
#include <stdio.h>
#include <stdlib.h>
#include <twice.h>
double cblas_ddot(int n, const double *x, int increment_x, const double *y, int increment_y);
int main(void) {
    double x[100];
    int n = atoi(getenv("n"));
    for (int i = 0; i < n; i++)
        x[i] = i + 1;
    printf("dot %.0f\nmanuals %s\n", twice(CONSTANT * cblas_ddot(n, x, 1, x, 1)), getenv("CONSTANT_UNIT"));
    return 0;
}
C
cat >"$scratch/product/experiment.yaml" <<E2
name: product
factors: {n: {type: integer, minimum: 1, maximum: 100}}
modules: [nothing-like-this]
setup:
  - [make-constant, "7"]
  - [cc, -o, product, product.c, -ltwice, $blas]
run: {command: [in-prefix, ./product]}
teardown: [make-constant 8]
responses: {dot: {pattern: '^dot ([0-9]+)'}}
design: {generate: factorial, factors: {n: [3, 24]}}
E2
cat >"$scratch/product.yaml" <<E2
experiment: ./product
modules: [constant/1.5]
prefix: $scratch/prefix
probes: none
E2
export MODULEPATH=$scratch/modulefiles SITE_LEFTOVER=here
unset LIBRARY_PATH
check "a dry run says where software comes from" \
    grep -qx "software     modules constant/1.5; prefix $scratch/prefix" <("$ASSAY" run "$scratch/product.yaml" --dry-run)
measure "$scratch/product.yaml"
is "setup and run find what a module and a prefix have (2 x 7 x the sum of the first n squares)" \
    "$(cat_of "$archive" results/results.csv | awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next} {print $at["n"], $at["dot"]}' | sort -n | xargs)" \
    "3 196 24 68600"
check "values of a module reach commands as they are, teardown too" \
    test "$(cat_of "$archive" journal.jsonl | grep -c '"output":".*-\(setup\|teardown\)')" -eq 2
setup=$(cat_of "$archive" journal.jsonl | sed -n 's/.*"output":"\([^"]*-setup[^"]*\)".*/\1/p')
check "... none becomes text of a shell" grep -qFx "CONSTANT_UNIT=a \"b\"; \$(touch pwned) '{n}'" <(cat_of "$archive" "$setup")
check "what a module takes away is gone" test "$(cat_of "$archive" "$setup" | grep -c '^SITE_LEFTOVER=')" -eq 0
check "... which is recorded" grep -q '"SITE_LEFTOVER": *null' <(member)
check "the modules are on record" grep -q '"LOADEDMODULES": *"constant/1.5"' <(member)
check "... and whose they are" grep -q '"modules": *"Modules based on Lua: Version 8' <(member)
check "the prefix is in front" grep -q "\"PATH\": *\"$scratch/prefix/bin:$scratch/constant/bin:" <(member)
check "... of the libraries too, without an empty item" grep -q "\"LIBRARY_PATH\": *\"$scratch/prefix/lib\"" <(member)
check "a variable that may be a secret is not" test "$(member | grep -c -e hush -e LICENSE_KEY)" -eq 0
# "libopenblas.so.0 /usr/lib/... HASH PACKAGE" a library
libraries() { member | tr -d ' \n' | grep -oE '\{"name":"[^}]*\}' | sed 's/"//g; s/[{}]//g; s/\(name\|path\|sha256\|package\)://g; s/,/ /g'; }
libraries >"$scratch/libraries"
check "the BLAS that the program loads has its file's hash, and its package" \
    grep -qxE "libopenblas.so.0 $(readlink -f "$blas") $(sha256sum <"$blas" | cut -c1-64) libopenblas0-[a-z]+:.*" "$scratch/libraries"
check "... and so have the library of the prefix, without a package, and the C library" \
    test "$(grep -cxE "libtwice.so $scratch/prefix/lib/libtwice.so $(sha256sum <"$scratch/prefix/lib/libtwice.so" | cut -c1-64)|libc.so.6 .* $(sha256sum <"$(ldconfig -p | sed -n 's/.*libc\.so\.6 .*=> //p' | head -1)" | cut -c1-64) libc6:.*" "$scratch/libraries")" -eq 2
is "the program behind the one that starts it is on record too" \
    "$(member | grep -oE '"path": "[^"]*/(in-prefix|product)' | sed 's,.*/,,' | xargs)" 'in-prefix product'

# ---- faults, quoted with their node ------------------------------------------------------------------------------
node=$(hostname)
campaign() { # campaign NAME LINE...
    local name=$1; shift
    printf '%s\n' 'experiment: {name: small, run: echo y 4, responses: {y: {pattern: "^y ([0-9]+)"}}}' 'probes: none' "$@" >"$scratch/$name.yaml"
}
campaign missing 'modules: [constant/1.5, constant/99]'
refuse "a module that is not there is named with its node and Lmod's words" 2 \
    "on node $node, module 'constant/99' cannot be loaded: Lmod has .*unknown: \"constant/99\"" "$ASSAY" run "$scratch/missing.yaml" -o "$scratch/failed"
campaign folder "prefix: $scratch/no folder"
refuse "a prefix that is not there too" 2 "on node $node, the prefix '$scratch/no folder' is not a folder" "$ASSAY" run "$scratch/folder.yaml" -o "$scratch/failed"
campaign relative 'prefix: opt'
refuse "... or is relative" 2 "relative.yaml:3:9: 'prefix' is 'opt', expected an absolute path" "$ASSAY" run "$scratch/relative.yaml"
campaign dash 'modules: [gcc, --force]'
refuse "a name that a tool would take for an option is refused" 2 "dash.yaml:3:16: 'modules' is '--force', expected a name" "$ASSAY" run "$scratch/dash.yaml"

cat >"$scratch/hint.yaml" <<'E2'
experiment:
  name: hint
  setup: ['SETUP']
  run: echo y 4
  responses: {y: {pattern: '^y ([0-9]+)'}}
probes: none
E2
hint() { # hint NAME SETUP PATTERN
    sed "s|SETUP|$2|" "$scratch/hint.yaml" >"$scratch/hint-now.yaml"
    refuse "$1" 2 "on node $node, .*$3" "$ASSAY" run "$scratch/hint-now.yaml" -o "$scratch/failed"
}
hint "a compiler that is not there names its package" 'PATH=/none; mpicc -o x x.c' "mpicc: not found \(mpicc: Debian's libopenmpi-dev or libmpich-dev\)"
hint "... a header" 'echo "#include <cblas.h>" \| cc -nostdinc -I. -c -xc -' "cblas.h: No such file or directory.*\(cblas.h: Debian's libopenblas-dev, libblis-dev or"
hint "... a library that the linker does not find" 'ld -nostdlib -lopenblas' "cannot find -lopenblas.* \(-lopenblas: Debian's libopenblas-dev\)"

check "what is refused before anything was measured leaves neither a folder nor an archive" test -z "$(ls -A "$scratch/failed")"

# ---- Spack and a container: stand-ins, which show what they are asked, and that their answers are used ------------
mkdir "$scratch/bin"
cat >"$scratch/bin/spack" <<S
#!/bin/sh
[ "\$1" != --version ] || { echo 0.23.1; exit; }
printf '[%s]' "\$@" >>"$scratch/asked"; echo >>"$scratch/asked"
case \$* in
*nothing*) echo "==> Error: Spec 'nothing' matches no installed packages." >&2; exit 1 ;;
*env*) echo 'export FROM_ENVIRONMENT=2;' ;;
*) echo "export FROM_SPEC='2 0';" ;;
esac
S
cat >"$scratch/bin/apptainer" <<S
#!/bin/sh
[ "\$1" != --version ] || { echo apptainer version 1.3.4; exit; }
[ "\$4" = -c ] || { printf '[%s]' "\$@"; echo; } >>"$scratch/asked"
[ "\$1" = exec ] && shift 2 && exec "\$@"
S
chmod +x "$scratch/bin/"*
PATH=$scratch/bin:$PATH
printf image >"$scratch/an image.sif"
cat >"$scratch/spack.yaml" <<E2
experiment:
  name: container
  spack: ["hpl@2.3 +openmp; touch pwned"]
  container: $scratch/an image.sif
  setup: [[touch, made]]
  run: {command: [sh, -c, 'test -e made && echo y \$FROM_SPEC']}
  responses: {y: {pattern: '^y ([0-9]+)'}}
probes: none
E2
measure "$scratch/spack.yaml"
is "Spack is asked for the spec, and the container stands before each command" "$(cat "$scratch/asked")" \
    "[load][--sh][hpl@2.3 +openmp; touch pwned]
[exec][$scratch/an image.sif][touch][made]"
check "... which finds what Spack has loaded" grep -q ',2,[^,]*,[^,]*,[^,]*$' <(cat_of "$archive" results/results.csv)
check "the image is on record" grep -q "\"image.sha256\": *\"$(sha256sum <"$scratch/an image.sif" | cut -c1-64)\"" <(member)
check "... and the versions of both" test "$(member | grep -cE '"(spack": *"0.23.1|container": *"apptainer version 1.3.4)"')" -eq 2
check "nothing became text of a shell" test -z "$(find "$scratch" -name pwned)"
rm "$scratch/asked"
campaign environment "spack: {environment: $scratch/env}"
measure "$scratch/environment.yaml"
is "a Spack environment is activated" "$(cat "$scratch/asked")" "[env][activate][--sh][-d][$scratch/env]"
check "... and on record" grep -q '"FROM_ENVIRONMENT": *"2"' <(member)
campaign nothing 'spack: nothing'
refuse "a spec that is not installed is named with Spack's words" 2 \
    "on node $node, spack's 'nothing' cannot be loaded: ==> Error: Spec 'nothing' matches no" "$ASSAY" run "$scratch/nothing.yaml" -o "$scratch/failed"
campaign docker "container: {image: [a, b]}"
refuse "a container has one image" 2 "docker.yaml:3:20: 'image' is a sequence, expected text" "$ASSAY" run "$scratch/docker.yaml"

# ---- two nodes, whose login shells know of modules, unlike what ssh starts ----------------------------------------
if bed_for_part 2 --names 'node-%'; then
    for n in 1 2; do
        bed on $n sh -c "mkdir -p /etc/lmod/modules/site && echo 'setenv(\"SITE_LEVEL\", \"$n\")' >/etc/lmod/modules/site/1.lua"
    done
    campaign site 'modules: [site]'
    archive=$(bed run "$ASSAY" run "$scratch/site.yaml" --nodes 'node-[1-2]' -o "$scratch/runs" 2>"$scratch/err")
    check "environments of nodes that differ are noted" grep -q 'the nodes differ in SITE_LEVEL: node node-1: 1; node node-2: 2' "$scratch/err"
    is "... and nothing else of theirs is" "$(grep -c 'the nodes differ in' "$scratch/err")" 1
    check "... and journalled" grep -q '"event":"difference","what":"SITE_LEVEL","value":"2","nodes":"node-2"' <(cat_of "$archive" journal.jsonl)
    bed on 2 rm /etc/profile.d/lmod.sh
    refuse "a node without a module system says which package has one" 2 \
        "on node node-2, there is no module system; expected Lmod or Environment Modules \(Debian: lmod or environment-modules\)" \
        bed run "$ASSAY" run "$scratch/site.yaml" --nodes 'node-[1-2]' -o "$scratch/failed"
    sed "s|SETUP|echo \"int x = y;\" >x.c; [ \$(hostname) = node-1 ] \|\| cc -c x.c|" "$scratch/hint.yaml" >"$scratch/build.yaml"
    refuse "a build that fails on one node shows that node, and what the compiler says" 3 \
        "on node node-2, .* exited with status 1: x.c:1:9: error: .y. undeclared" \
        bed run "$ASSAY" run "$scratch/build.yaml" --nodes 'node-[1-2]' -o "$scratch/failed"
    sed "s|SETUP|echo \"int f(void) { return y; }\" >x.c; cc -c x.c|" "$scratch/hint.yaml" >"$scratch/build.yaml"
    refuse "... and one that fails on both nodes, too" 3 \
        "2 of 2 nodes failed: node-\[1-2\]: exited with status 1: x.c:1:22: error: .y. undeclared" \
        bed run "$ASSAY" run "$scratch/build.yaml" --nodes 'node-[1-2]' -o "$scratch/failed"
else
    skip "environments of nodes that differ are noted" "no nodes of their own here"
fi
finish
