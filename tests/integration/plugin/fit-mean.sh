#!/bin/bash
# The plugin of the documents, built outside of the tree against the installed headers: found, run, left out of, written.
. "$(dirname "$0")/../tap.sh"
command -v pkg-config >/dev/null || plan_skip "no pkg-config"
cd "$scratch" || exit 1

cmake --install "$ASSAY_BUILD" --component headers --prefix "$scratch/installed" >install.log 2>&1
export PKG_CONFIG_PATH=$scratch/installed/lib/pkgconfig
mkdir -p own/plugins
# shellcheck disable=SC2046 # several words
check "it builds against the installed headers" cc -std=c11 -Wall -Wextra -Werror -shared -fPIC $(pkg-config --cflags assay) \
    -o own/plugins/fit-mean.so "$ASSAY_SOURCE/examples/fit-mean/fit-mean.c"
is "... in about 25 lines" "$([ "$(grep -c . "$ASSAY_SOURCE/examples/fit-mean/fit-mean.c")" -le 27 ] && echo yes)" yes
printf 'host,duration\nb,1\nb,2\nb,6\na,4\na,5\na,7\n' >calls.csv
export ASSAY_PATH=$scratch/own
check "ASSAY_PATH finds it" "$ASSAY" fit mean calls.csv --by host --folds 3 --folds-by row -o model.json
check "... lists it" sh -c "'$ASSAY' plugins | grep -q '^fit *mean .*the mean of each group'"
check "... and says what can be set" sh -c "'$ASSAY' fit mean --parameters | grep -q 'the mean of each group'"
check "... which is nothing" sh -c "'$ASSAY' fit mean --parameters | grep -qx 'it has no parameters'"
json() { python3 -c "import json; m = json.load(open('model.json')); print($1)"; }
if command -v python3 >/dev/null; then
    is "... the mean of each group" "$(json '[g["parts"][0]["estimates"][0]["estimate"] for g in m["groups"]]')" "[5.333333333333333, 3]"
    is "... which rows are left out is the host's" "$(json '[round(g["values"]["cv_rmse"], 9) for g in m["groups"]]')" \
        "[1.870828693, 3.240370349]"
fi
check "... a sentence says whether it can be used" sh -c "'$ASSAY' fit mean calls.csv --by host | head -1 | grep -q 'cross-validated error'"
check "the model is shown" sh -c "'$ASSAY' model show model.json | grep -q 5.33"
check "... evaluated" sh -c "'$ASSAY' model eval model.json host=a | grep -q 5.33"
# shellcheck disable=SC2046
check "a predictor likewise" cc -std=c11 -Wall -Wextra -Werror -shared -fPIC $(pkg-config --cflags assay) \
    -o own/plugins/predict-sweeps.so "$ASSAY_SOURCE/examples/predict-sweeps/predict-sweeps.c"
echo '#include <assay/predict.h>
struct column left_out = {"time", COLUMN_NUMBER, "s"};' >column.c
# shellcheck disable=SC2046
check "... with members left out" cc -std=c11 -Wextra -Werror -fsyntax-only $(pkg-config --cflags assay) column.c
# shellcheck disable=SC2046
refuse "... which only the engine is warned of" 1 "missing initializer" cc -std=c11 -Wextra -Werror -fsyntax-only -DASSAY_ENGINE \
    $(pkg-config --cflags assay) column.c
for compiler in gcc clang; do
    command -v $compiler >/dev/null || { skip "members are left out ($compiler)" "no $compiler"; continue; }
    for plugin in examples/fit-mean/fit-mean.c examples/predict-sweeps/predict-sweeps.c tests/plugins/predict-travel.c; do
        # shellcheck disable=SC2046
        check "members of $(basename $plugin) are left out in silence ($compiler)" $compiler -std=c11 -Wall -Wextra -Wpedantic -Werror \
            -fsyntax-only $(pkg-config --cflags assay) "$ASSAY_SOURCE/$plugin"
    done
done
is "... in about 50 lines" "$([ "$(grep -c . "$ASSAY_SOURCE/examples/predict-sweeps/predict-sweeps.c")" -le 56 ] && echo yes)" yes
awk 'BEGIN { print "host,rows,columns,duration (ms)"
    for (r = 1; r <= 4; r++) for (c = 1; c <= 4; c++) { print "a," r "," c "," r * c; print "b," r "," c "," 2 * r * c } }' >sweeps.csv
check "... by a model of sweeps" "$ASSAY" fit linear sweeps.csv --by host --response duration --terms rows*columns --folds 0 -o sweep.json
check "... predicts the slowest group" "$ASSAY" predict sweeps sweep.json --set size=4 --set processes=2 --set sweeps=10 -o times.csv
check "... in seconds" grep -q '^,4,2,10,0\.1[56][0-9]*,b,' times.csv
check "... is searched by its time" "$ASSAY" predict sweeps sweep.json --set size=4,2,8 --search 3
report $(output 'by the least time; best first$'; echo $?) "... which has a goal"
printf 'm,duration\n1,1\n2,2\n3,3.1\n4,4\n' >m.csv
"$ASSAY" fit linear m.csv --response duration --terms m --folds 0 -o m.json >/dev/null 2>&1
refuse "... and refuses a model of other columns when it is opened" 2 "needs the column 'm'" "$ASSAY" predict sweeps m.json --set size=4
printf 'host,duration\nb,2\nb,4\na,5\na,6\n' >more.csv
check "... and compared" "$ASSAY" compare model.json model.json --data more.csv
if [ "$(id -u)" = 0 ]; then
    chmod 777 own/plugins
    refuse "root loads none that others could replace" 2 "cannot use '$scratch/own/plugins/fit-mean.so': '$scratch/own/plugins' belongs to user 0 and has mode 0777" \
        "$ASSAY" fit mean calls.csv --by host
    check "... but where that is meant" env ASSAY_TRUSTED_FOLDERS="$scratch/own" "$ASSAY" fit mean calls.csv --by host
    chmod 755 own/plugins; chown 65534 own/plugins/fit-mean.so
    refuse "... and none that is another user's" 2 "fit-mean.so': it belongs to user 65534" "$ASSAY" fit mean calls.csv --by host
fi
check "without it the name is refused" sh -c "! ASSAY_PATH= '$ASSAY' fit mean calls.csv 2>err && grep -q mean err"
finish
