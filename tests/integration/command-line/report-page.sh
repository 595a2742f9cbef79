#!/bin/bash
# The page of `assay report -o FILE.html`: whole in one file, readable without scripts, harmless whatever an archive holds; and,
# where a Chromium is installed, charts that are drawn, zoomed together and explained at the pointer.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../browser.sh"
cleanup() { browser_close; }
cd "$scratch" || exit 1

# PAGE without its scripts and styles: what is there without them.
plain() { awk '{ text = text $0 "\n" } END { while (match(text, /<(script|style)[ >]/)) { tag = substr(text, RSTART + 1, RLENGTH - 2)
    printf "%s", substr(text, 1, RSTART - 1); text = substr(text, RSTART); sub("^.*", "&", tag)
    end = index(text, "</" tag ">"); text = substr(text, end + length(tag) + 3) } printf "%s", text }' "$1"; }
# Nothing but links within the page: no address that a browser would load.
loads_nothing() { ! plain "$1" | grep -E '(src|href|action|data|poster|srcset)=["'\''][^#]|url\(|@import|http-equiv="refresh"' && ! sed -n '/<style>/,/<\/style>/p' "$1" | grep -E 'url\(|@import'; }

"$ASSAY_BUILD/tests/benchmarks/report-archive" run made.zip 3 240 || exit 1
check "a page is written" "$ASSAY" report made.zip -o page.html
is "... and nothing printed" "$(cat .out .err)" ""
plain page.html >plain.html
report $(loads_nothing page.html; echo $?) "it loads nothing"
report $(contains page.html "Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src 'sha256-"; echo $?) \
    "and is not allowed to"
report $(contains page.html 'Copyright \(c\) 2022 Leon Sorokin'; echo $?) "the licence of uPlot is in it"
report $(contains plain.html '<td class="n">1[0-9]{3}' && contains plain.html '<td class="w">best</td>'; echo $?) "without scripts: the settings, best first"
report $(contains plain.html '<td class="w">node-3</td>.*<td class="n">-[12][.].*2 % slower than the median of 3 equal nodes'; echo $?) "... the slow node, by its name"
report $(contains plain.html 'relative to the mean of the same settings; below 0 is worse'; echo $?) "... on an axis for responses of all kinds"
is "... sections" "$(grep -o '<h2>[^<]*' plain.html | cut -c 5- | paste -sd,)" \
    "Summary,Can it be trusted,The answer,What the response depends on,Response by factor,Design coverage,Order of measurement,Nodes,Sensors over time"
is "... an SVG of each chart but those of single nodes" "$(grep -c '<svg viewBox' plain.html) $(grep -c 'drawn by scripts only' plain.html)" "9 12"
report $(contains plain.html '<path class="l s0 k0" d="M[0-9.]+ [0-9.]+h0L'; echo $?) "... with lines"
report $(contains plain.html '<title>warm-up</title>' && contains plain.html '<li class="s2 k0">node-3 \(slow\)</li>'; echo $?) "... phases, and nodes by their names"
report $(contains plain.html 'the marks at the lower edge|marks at the lower edge are starts of units[.] Every sample is shown'; echo $?) "... what was left out: nothing"

refuse "another ending" 2 "the page 'page.txt' has no name of a page; expected one that ends in .html" "$ASSAY" report made.zip -o page.txt
refuse "JSON into a page" 2 "give one of them" "$ASSAY" report made.zip --json -o page.html
ln -s made.zip made.html
refuse "a page over the input" 2 "is also an input" "$ASSAY" report made.zip -o made.html

# ---- A hostile archive: texts that would end an element or an attribute, and set a variable if they ran.
evil='</script><script>window.evil=1</script><img src=x onerror=window.evil=1>"'"'"'&'
cp -r run evil
awk -v evil="$evil" 'BEGIN { FS = OFS = ","; gsub(/&/, "\\\\&", evil); gsub(/"/, "\"\"", evil) }
    NR > 1 { sub(/1ring/, "\"" evil "\"", $10); sub(/node-2/, "\"" evil "\"", $6) } { print }' run/results/results.csv >evil/results/results.csv
awk -v evil="$evil" 'BEGIN { gsub(/&/, "\\\\&", evil); gsub(/"/, "\"\"", evil) }
    NR == 1 { sub(/core-0-1/, "\"" evil "\"") } { print }' run/nodes/node-1/probes/temperature.csv >evil/nodes/node-1/probes/temperature.csv
sed -i 's|"name": "measure"|"name": "</script><script>window.evil=1</script>\\u2028"|; s|2 % slower|<img src=x onerror=window.evil=1>2 % slower|' evil/run.json
"$ASSAY_BUILD/tests/benchmarks/report-archive" --seal evil evil.zip
check "a page of a hostile archive" "$ASSAY" report evil.zip -o evil.html
plain evil.html >evil-plain.html
report $(contains evil-plain.html '&lt;img src=x onerror=window.evil=1&gt;&quot;&#39;&amp;'; echo $?) "has its texts"
report $(! grep -qE '<img|<script>window|onerror=[^&]*"' evil-plain.html && ! grep -q '<script>window' evil.html; echo $?) "... as texts alone"
is "... with as many scripts as charts, and the page's two" "$(grep -o '<script' evil.html | wc -l) $(grep -o '</script' evil.html | wc -l)" \
    "$(($(grep -c '<figure class="chart">' evil.html) + 2)) $(($(grep -c '<figure class="chart">' evil.html) + 2))"
report $(loads_nothing evil.html; echo $?) "... and loads nothing"

# ---- Predictions and fits
check "a prediction" "$ASSAY" predict hpl-layers --set N=20000 --set NB=64,128 --set P=2 --set Q=2 --set rate=40Gflop/s --set latency-1=1us \
    --set bandwidth-1=10GB/s --plot panels --plot layers --archive layers.zip
check "has a page" "$ASSAY" report layers.zip -o layers.html
plain layers.html >layers-plain.html
report $(contains layers-plain.html 'scenario 2</li>' && contains layers-plain.html '<path class="l s1' && contains layers-plain.html '<td class="n">157[.]64</td>'; echo $?) \
    "... with the curves of its panels and its tables"
printf 'size,time [s]\n' >time.csv
for size in 1 20 300 4000 50000; do echo "$size,$((1000 + size + size % 7))e-9"; done >>time.csv
check "a fit" "$ASSAY" fit linear time.csv --response time --terms 1+size --sizes size --plot fit.html
report $(contains fit.html '<p class="verdict usable">&#10003; usable' && contains fit.html '<figcaption>residuals</figcaption>'; echo $?) "has one, too"

# ---- In a browser
if ! browser_find; then
    skip "in a browser" "no chromium here; install the package chromium"
    finish
fi
check "the page is opened" browser_open "$scratch/page.html"
evaluate 'document.querySelector("figure.chart").scrollIntoView(); ""' >.load
one_built() { equal "$(evaluate "String(assayPage.charts.length > 0)")" true; }
report $(eventually one_built >&2; echo $?) "what is in view is drawn"
show_all='document.querySelectorAll("details").forEach(d => d.open = true); assayPage.showAll();
    new Promise(d => setTimeout(() => d(document.querySelectorAll("figure.chart").length - assayPage.charts.length)))'
is "... and the rest, when it is" "$(evaluate "$show_all")" 0
is "... their lines have colours" "$(evaluate 'assayPage.charts.filter(c => { const d = c.plot.ctx.getImageData(0, 0, c.plot.ctx.canvas.width, c.plot.ctx.canvas.height).data;
    for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 100 && Math.abs(d[i] - d[i + 2]) > 60) return false; return true; }).length')" 0
evaluate 'window.find = title => assayPage.charts.find(c => c.figure.querySelector("figcaption").textContent.startsWith(title)); 
    window.warm = find("Temperature: hottest"); window.clock = find("Frequency: mean"); warm.figure.scrollIntoView();
    window.box = () => { const b = warm.plot.over.getBoundingClientRect(); return [b.left, b.top, b.width, b.height].map(Math.round).join(" "); }; ""' >.load
read -r left top width height <<<"$(evaluate 'box()')"
mouse mouseMoved $((left + width / 2)) $((top + height / 2))
tip="$(evaluate 'warm.tip.hidden ? "hidden" : warm.tip.textContent')"
report $(grep -qE '^time since the run began, s: 1[0-9]{2}[.0-9]* s  \(measure\)$' <<<"$tip" && grep -qE '^node-[123].*: [67][0-9.]* (°|\\u00b0)C$' <<<"$tip"; echo $?) "the pointer shows values with units"
peak() { evaluate 'Math.round(warm.plot.scales.y.max) >= 95 ? "seen" : "hidden"'; }
is "a single sample's peak is seen" "$(peak)" seen
mouse mouseMoved $((left + width / 4)) $((top + 40))
mouse mousePressed $((left + width / 4)) $((top + 40))
dragging=yes mouse mouseMoved $((left + width / 2)) $((top + 40))
mouse mouseReleased $((left + width / 2)) $((top + 40))
ranges() { evaluate 'new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => d([warm, clock].map(c => [c.plot.scales.x.min, c.plot.scales.x.max].map(v => Math.round(v / 10)).join("-")).join(" ")))))'; }
is "dragging zooms it, and all over the same time" "$(ranges)" "6-12 6-12"
is "... where the peak is still seen" "$(peak)" seen
is "... and says how to go back" "$(evaluate '[warm, clock].map(c => c.reset.hidden).join(" ")')" "false false"
evaluate 'clock.reset.click(); ""' >.load
is "... which does" "$(ranges)" "0-24 0-24"
evaluate 'warm.figure.querySelectorAll(".legend li")[0].click(); ""' >.load
is "a click on a name hides its line" "$(peak)" hidden
is "no error was told, and nothing requested" "$(browser_told)" ""
check "the hostile page is opened" browser_open "$scratch/evil.html"
is "... and drawn" "$(evaluate "$show_all")" 0
is "... nothing of it has run" "$(evaluate 'String(window.evil) + " " + document.images.length')" "undefined 0"
is "... told, or requested" "$(browser_told)" ""
browser_close
finish
