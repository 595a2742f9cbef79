#!/bin/bash
# Numbers at the ends of what a double holds, where charts are made of them; models that nobody would write.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

printf 'x,y\n1,1\n2,2\n3,4\n4,4\n1e150,5\n' >far.csv
check "a plot over 150 decades has an end" timeout 60 "$ASSAY" fit linear far.csv --response y --terms 1+x --plot far.svg
awk 'BEGIN {print "g,y"; for (i = 0; i < 40; i++) print i % 4 "," (i % 3 ? "" : "-") "1.5e150"}' >wide.csv
check "a chart of residuals over 300 decades" timeout 60 "$ASSAY" fit wide.csv --response y --terms 1 --by g
printf 'x,duration\n1e140,1\n2e140,2\n3e140,4\n5e140,7\n' >large.csv
refuse "a term that no double can hold" 2 "could not be fitted: " "$ASSAY" fit large.csv --terms '1+x^3'
check "large values that a double can hold" "$ASSAY" fit large.csv --terms '1+x' --set noise=homoscedastic --json
grep -qE '"estimate": 1\.54.*e-140' .out
report $? "... are fitted"

segment() { # segment FROM TO ESTIMATE
    echo "{\"kind\": \"segment\", \"from\": $1, \"to\": $2, \"estimates\": [{\"term\": \"1\", \"estimate\": $3, \"standard_error\": null, \"t\": null, \"p\": null}],
        \"covariance\": null, \"values\": {}, \"domain\": {\"size\": [$1, $2]}}"
}
cat >curve.json <<END
{"assay_model": 2, "kind": "piecewise", "over": "size", "response": {"name": "t", "unit": "s"}, "weights": null, "by": [],
 "terms": [{"name": "1", "unit": "s", "factors": []}], "columns": [{"name": "size", "unit": "By", "type": null}],
 "origin": {"plugin": "p", "version": "1", "engine": "1", "created": "2026-01-01T00:00:00Z", "rows": 9, "seed": 1, "settings": {}, "inputs": []},
 "units": {}, "groups": [{"labels": {}, "rows": 9, "values": {}, "notes": [], "parts": [$(segment 1 2 1.7e308), $(segment 2 3 -1.7e308)]}], "skipped": []}
END
check "a curve from end to end of the doubles" timeout 60 "$ASSAY" model show curve.json
check "... can be evaluated" "$ASSAY" model eval curve.json size=2.5
finish
