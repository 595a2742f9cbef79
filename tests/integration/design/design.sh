#!/bin/bash
# assay design: the table that it writes, the seed that repeats it, and what it refuses.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1

rows() { tail -n +2 "$1" | wc -l; }
sorted() { (head -1 "$1"; tail -n +2 "$1" | sort); }
design() { "$ASSAY" design "$@"; }

# ---- Kinds
full_factorial() {
    design factorial n=1000..3000:1000 nb=64,128 bcast=ring,long --order as-written >f.csv 2>f.err || return
    equal "$(sed -n '1p;2p;5p;13p' f.csv | tr '\n' ' ')" "n,nb,bcast 1000,64,ring 1000,128,long 3000,128,long " &&
        equal "$(rows f.csv)" 12 && equal "$(tail -n +2 f.csv | sort -u | wc -l)" 12 && equal "$(cat f.err)" ""
}
check "factorial has every combination, and needs no seed as written" full_factorial

drawn_ranges() {
    design uniform n=5..9 x=0.0..1.0 nb=64,128 --rows 500 >u.csv 2>/dev/null || return
    awk -F, 'NR > 1 && !($1 >= 5 && $1 <= 9 && $1 == int($1) && $2 >= 0 && $2 <= 1 && ($3 == 64 || $3 == 128)) {bad = 1}
        END {exit bad || NR != 501}' u.csv
}
check "uniform keeps to ranges, integers and choices" drawn_ranges

decades() {
    design log-uniform size=1..1e9 --rows 9000 --seed 1 >l.csv 2>/dev/null || return
    awk 'NR > 1 {count[length($1)]++} END {for (d = 1; d <= 9; d++) if (count[d] < 880 || count[d] > 1120) exit 1}' l.csv
}
check "log-uniform has as many values in each decade" decades

strata() {
    design latin-hypercube m=1..200 alpha=0.0..1.0 --rows 200 >h.csv 2>/dev/null || return
    equal "$(tail -n +2 h.csv | cut -d, -f1 | sort -un | wc -l)" 200 &&
        equal "$(awk -F, 'NR > 1 {print int($2 * 200)}' h.csv | sort -un | wc -l)" 200
}
check "latin-hypercube has every stratum once" strata

product() {
    design uniform-product --compute 'lda=max(m, n, k)' --seed 7 >p.csv 2>/dev/null || return
    equal "$(head -1 p.csv)" m,n,k,lda && equal "$(rows p.csv)" 545 && grep -qx 2048,2048,2048,2048 p.csv &&
        awk -F, 'NR > 1 {if ($1 > 15500 || $2 > 15500 || $3 > 15500 || $1 * $2 * $3 > 1e10) bad = 1
            l = $1 > $2 ? $1 : $2; if ($4 != (l > $3 ? l : $3)) bad = 1} END {exit bad}' p.csv &&
        tail -n +2 p.csv | sort >one && awk -F, -v OFS=, 'NR > 1 {print $2, $3, $1, $4}' p.csv | sort >turned && cmp one turned
}
check "uniform-product has all permutations within the caps" product

fixed() {
    design uniform-product m n k --fixed k=128 --products 4 --batch 2 --max-size 20000 --max-product 1e8 --add 5,6,7 --add 8,9,10 \
        >k.csv 2>/dev/null || return
    equal "$(rows k.csv)" 18 && equal "$(grep -c ',128$' k.csv)" 16 && grep -qx 5,6,7 k.csv && grep -qx 8,9,10 k.csv &&
        equal "$(design uniform-product --products 1 --batch 1 --add none 2>/dev/null | wc -l)" 7
}
check "uniform-product fixes a factor and adds rows" fixed

# ---- Seeds and orders
repeats() {
    design log-uniform size=1..1e9 --rows 50 >a.csv 2>a.err || return
    local seed
    seed=$(sed -n 's/^seed \([0-9]*\) (drawn from the system; --seed \([0-9]*\) repeats this design)$/\1/p' a.err)
    [ -n "$seed" ] && design log-uniform size=1..1e9 --rows 50 --seed "$seed" -o b.csv 2>b.err && cmp a.csv b.csv &&
        equal "$(cat b.err)" "seed $seed" && design log-uniform size=1..1e9 --rows 50 >c.csv 2>/dev/null && ! cmp -s a.csv c.csv
}
check "the seed that was drawn is printed and repeats the file" repeats

same_everywhere() {
    equal "$(design uniform-product --seed 42 2>/dev/null | sha256sum | cut -c1-64)" fd5d2e9630495866e77d3ba4197aaf9f1220cfe5c7a7859d5a7000f8f7d03b27
}
check "a seed gives the same bytes on every machine" same_everywhere

shuffled_later() {
    design uniform-product --seed 5 --repetitions 3 >all.csv 2>/dev/null &&
        design uniform-product --seed 5 --order as-written -o table.csv 2>/dev/null &&
        design --from table.csv --seed 5 --repetitions 3 >later.csv 2>/dev/null && cmp all.csv later.csv &&
        design --from - --seed 5 --repetitions 3 <table.csv >piped.csv 2>/dev/null && cmp all.csv piped.csv
}
check "a table that is shuffled later gets the same order" shuffled_later

repetitions() {
    design factorial n=1..3 --repetitions 4 >r.csv 2>/dev/null || return
    equal "$(tail -n +2 r.csv | sort | uniq -c | tr -s ' ' | tr '\n' ';')" " 4 1; 4 2; 4 3;" &&
        equal "$(design factorial n=1..3 --repetitions 2 --order as-written 2>/dev/null | tr '\n' ' ')" "n 1 2 3 1 2 3 "
}
check "repetitions repeat every row" repetitions

# ---- Controls
blocks() {
    design factorial n=1..3 control.turbo=on,off control.frequency=2.1GHz,1GHz..2GHz --repetitions 4 --seed 2 >b1.csv 2>/dev/null &&
        equal "$(head -1 b1.csv)" n,control.turbo,control.frequency && equal "$(rows b1.csv)" 48 &&
        equal "$(tail -n +2 b1.csv | cut -d, -f2,3 | uniq -c | awk '{print $1}' | tr '\n' ' ')" "12 12 12 12 " &&
        equal "$(tail -n +2 b1.csv | sort | uniq -c | awk '{print $1}' | sort -u)" 4 &&
        design factorial n=1..3 control.turbo=on,off control.frequency=2.1GHz,1GHz..2GHz --repetitions 4 --blocks 2 --seed 2 >b2.csv 2>/dev/null &&
        equal "$(tail -n +2 b2.csv | cut -d, -f2,3 | uniq -c | awk '{print $1}' | tr '\n' ' ')" "6 6 6 6 6 6 6 6 " &&
        equal "$(sorted b1.csv)" "$(sorted b2.csv)"
}
check "the lines of a state of the controls stand together, in as many blocks as asked for" blocks

crossed() {
    design uniform-product --products 2 --batch 1 --add none --seed 4 --order as-written >plain.csv 2>/dev/null &&
        design uniform-product --products 2 --batch 1 --add none --seed 4 --order as-written --cross control.turbo=on,off \
            >crossed.csv 2>/dev/null &&
        equal "$(sed -n 's/,on$//p' crossed.csv)" "$(tail -n +2 plain.csv)" && equal "$(grep -c ',off$' crossed.csv)" "$(rows plain.csv)"
}
check "a product is crossed with controls, and keeps its sizes" crossed

read_again() {
    design --from b2.csv --order as-written >b3.csv 2>/dev/null && cmp b2.csv b3.csv &&
        design --from b2.csv --blocks 1 --seed 1 2>/dev/null | tail -n +2 | cut -d, -f2,3 | uniq | wc -l | grep -qx 4
}
check "a table with controls is read as it was written, and shuffled in blocks" read_again

# ---- From documents
from_campaign() {
    mkdir -p campaign && printf 'n,x\n1,0.50\n2,1e-3\n' >campaign/sizes.csv &&
        printf 'experiment: dgemm\ndesign: {file: sizes.csv, order: as-written, repetitions: 2}\n' >campaign/c.yaml &&
        equal "$(design --from campaign/c.yaml 2>/dev/null | tr '\n' ' ')" "n,x 1,0.5 2,0.001 1,0.5 2,0.001 " &&
        equal "$(design --from campaign/c.yaml --repetitions 1 2>/dev/null | tr '\n' ' ')" "n,x 1,0.5 2,0.001 " &&
        printf '{generate: factorial, factors: {n: [1, 2]}, seed: 3}\n' >bare.yaml &&
        design --from bare.yaml 2>bare.err >/dev/null && equal "$(cat bare.err)" "seed 3"
}
check "a campaign's design is taken, and what the command says goes first" from_campaign

# ---- Output
whole_or_not() {
    echo before >kept.csv
    ! design factorial n=1..3 n=4 -o kept.csv 2>/dev/null && equal "$(cat kept.csv)" before &&
        ! design factorial n=1..3 -o missing/there.csv 2>/dev/null
}
check "a design that fails leaves the file as it was" whole_or_not

full_disk() {
    [ -w /dev/full ] || return 0
    design uniform n=1..9 --rows 100000 >/dev/full 2>full.err
    [ $? -eq 1 ] && grep -q "cannot write 'standard output': No space left on device" full.err
}
check "a full disk is said" full_disk

check "help tells about kinds" sh -c '"$ASSAY" design --help | grep -q latin-hypercube'

# ---- Refusals
refuse "no kind" 2 "expected a kind of design, or --from FILE" design
refuse "a kind that is not there" 2 "'assay design' has no action 'unifrom'; did you mean 'uniform'" design unifrom n=1..2
refuse "a kind unlike any" 2 "expected factorial, uniform, log-uniform" design sobol n=1..2
refuse "no rows" 2 "uniform needs --rows" design uniform n=1..2
refuse "rows that are no number" 2 "rows 1.5, expected a whole number from 1 to" design uniform n=1..2 --rows 1.5
refuse "rows where none are drawn" 2 "factorial' has no option '--rows'" design factorial n=1..2 --rows 4
refuse "a batch where there is no product" 2 "uniform' has no option '--batch'" design uniform n=1..2 --rows 4 --batch 3
refuse "no factors" 2 "factorial' has 0 operands; expected factors" design factorial
refuse "a factor without values" 2 "'n', expected a factor such as" design factorial n
refuse "an order that is not there" 2 "order 'sorted', expected random or as-written" design factorial a=1 --order sorted
refuse "a cap that nothing meets" 2 "cannot have a product of 10000000000, expected a max-size of about" design uniform-product --max-size 10
refuse "a range for a product" 2 "'m=1..4', expected only the name" design uniform-product m=1..4
refuse "both --from and a kind" 2 "--from and a kind of design are both given" design factorial n=1 --from table.csv
refuse "a file that is not there" 2 "nowhere.yaml" design --from nowhere.yaml
refuse "a table that is not there" 2 "nowhere.csv" design --from nowhere.csv
echo 'experiment: dgemm' >none.yaml
refuse "a document without a design" 2 "none.yaml:1:1: no 'design'" design --from none.yaml
echo 'design: {repetitions: 3}' >single.yaml
refuse "a design without a table" 2 "has no table" design --from single.yaml
printf 'design: {generate: uniform, rows: 3, factor: {n: 1}}\n' >typo.yaml
refuse "a document with a typo" 2 "typo.yaml:1:[0-9]+: .*factors" design --from typo.yaml
printf 'a,b\n1,2\n3\n' >short.csv
refuse "a short row" 2 "short.csv:3" design --from short.csv
: >empty.csv
refuse "an empty table" 2 "empty.csv:1" design --from empty.csv

# The YAML that --help shows is taken.
documented() {
    "$ASSAY" design --help | sed -n '/^  design: {/,/^$/p' | sed '/^$/d' >shown.yaml
    equal "$(grep -c '^  design:' shown.yaml)" 9 || return
    printf 'n\n1\n' >sizes.csv
    csplit -sz -f shown- -b %d.yaml shown.yaml '/^  design:/' '{*}'
    for file in shown-?.yaml; do design --from "$file" >table.csv 2>/dev/null || { cat "$file" >&2; return 1; }; done
}
check "the designs in the manual are right" documented

finish
