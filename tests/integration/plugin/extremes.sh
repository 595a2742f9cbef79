#!/bin/bash
# Numbers at the ends of what a double holds, where pictures and platforms are made of them; models that nobody would write.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

printf 'x,y\n1,1\n2,2\n3,4\n4,4\n1e308,5\n' >far.csv
check "a plot over 308 decades has an end" timeout 60 "$ASSAY" fit linear far.csv --response y --terms 1+x --plot far.svg
awk 'BEGIN {print "g,y"; for (i = 0; i < 40; i++) print i % 4 "," (i % 3 ? "" : "-") "1.5e308"}' >wide.csv
check "a chart of residuals from end to end of the doubles" timeout 60 "$ASSAY" fit mixture wide.csv --response y --by g --set folds=0
printf '%s\n' size,y 256,1e-4 1048576,1e9 524288,1e-2 16,1e6 8192,1e6 512,1e12 8192,1e-10 8192,1e3 4096,1e1 16384,1e-12 \
    64,1e4 32768,1e7 16,1e4 1048576,1e8 1048576,1e-10 256,1e-10 2048,1e-3 1024,1e4 65536,1e-7 524288,1e11 \
    8,1e-5 1048576,1e-5 131072,1e12 8192,1e-5 512,1e2 2048,1e-11 4096,1e1 64,1e9 4096,1e12 8,1e7 \
    32,1e-11 8192,1e3 1048576,1e3 262144,1e-12 8192,1e-10 2048,1e12 64,1e12 32,1e-4 64,1e3 16,1e-8 >decades.csv
check "segments of sums that 32 digits do not hold" timeout 60 "$ASSAY" fit piecewise decades.csv --response y --sizes size --set criterion=log \
    --set segments=2 --set equal=weighted
refuse "two outputs that are one file" 2 "'model.json' and './model.json' are one file" \
    "$ASSAY" fit far.csv --response y --terms 1+x -o model.json --plot ./model.json
check "... and nothing was written" test ! -e model.json

head='"response": {"name": "t", "unit": "s"}, "factors": [{"name": "size", "unit": "By"}], "weights": null, "by": [], "skipped": [],
"origin": {"plugin": "p", "version": "1", "engine": "1", "created": "2026-01-01T00:00:00Z", "rows": 9, "inputs": []}'
segment() { # segment FROM TO ESTIMATE
    echo "{\"kind\": \"segment\", \"from\": $1, \"to\": $2, \"terms\": [{\"name\": \"1\", \"estimate\": $3}], \"covariance\": null,
        \"domain\": [{\"name\": \"size\", \"minimum\": $1, \"maximum\": $2}]}"
}
echo "{\"assay_model\": 1, \"kind\": \"piecewise\", \"over\": \"size\", \"formula\": [{\"name\": \"1\", \"factors\": []}], $head,
    \"groups\": [{\"labels\": {}, \"n\": 9, \"notes\": [], \"parts\": [$(segment 1 2 1.7e308), $(segment 2 3 -1.7e308)]}]}" >curve.json
check "a curve from end to end of the doubles" timeout 60 "$ASSAY" model show curve.json
finish
