# assay archive list|cat|extract|verify on right and wrong zips, and other programs on ours.
. "$(dirname "$0")/../tap.sh"

samples=$ASSAY_SOURCE/archive-format/samples
good=$samples/valid/small-1.0.zip
tab=$(printf '\t')
cd "$scratch" || exit 1
# As check, and keeps what was printed in the file shown.
check_shown() { check "$@"; cp .out shown; }

# ---- what works ------------------------------------------------------------------------------------------------
check_shown "verify takes the valid sample" "$ASSAY" archive verify "$good"
check "and says what it is" grep -q "verified: completed run of dgemm, 18 files" shown
check_shown "verify takes that of version 1.1" "$ASSAY" archive verify "$samples/valid/small-1.1.zip"
check "and traces its results" grep -q ", 2 results traced$" shown
check_shown "verify --json" "$ASSAY" archive verify --json "$good"
check "gives one line" test "$(wc -l <shown)" -eq 1
sha256=$(sha256sum <"$good"); sha256=${sha256%% *}
check "with the sha256 of the zip" grep -q "\"sha256\":\"$sha256\"" shown
check_shown "list" "$ASSAY" archive list "$good"
check "names members" grep -q " results/results.csv\$" shown
check "and the status" grep -qx "status  *completed" shown
check "that it is not verified, and how it would be" grep -qx "verified  *no: .assay archive verify. checks every byte" shown
check "and units of both sizes" grep -q "^ *size (byte) *packed (byte) " shown
check_shown "list --json" "$ASSAY" archive list "$good" --json
check "has every member" test "$(grep -c '"packed"' shown)" -eq 18

"$ASSAY" archive cat "$good" campaign.yaml >campaign.yaml
check "cat gives the bytes" test "$(sha256sum <campaign.yaml)" = "$(unzip -p "$good" campaign.yaml | sha256sum)"
refuse "cat of a member that is not there" 2 "there is no member 'nothing'" "$ASSAY" archive cat "$good" nothing
"$ASSAY" archive cat "$good" ro-crate-metadata.json | head -c 1 >first
check "a reader of a pipe may stop early" test "$(cat first)" = "{"

check_shown "extract" "$ASSAY" archive extract "$good"
check "tells the folder" grep -qx small-1.0 shown
check "which sha256sum -c takes" sh -c 'cd small-1.0 && sha256sum --quiet -c manifest-sha256.txt'
refuse "not twice to the same place" 2 "is not empty" "$ASSAY" archive extract "$good"
mkdir empty
check "an empty folder is taken" "$ASSAY" archive extract "$good" -C empty
check "and gets the same" diff -r small-1.0 empty
check "some members" "$ASSAY" archive extract "$good" nodes/ results/results.csv -C deep/some
check "and only these" test "$(cd deep/some && find . -type f | sort | tr '\n' ' ')" = \
    "./nodes/n-1.site.example/facts.json ./nodes/n-1.site.example/raw/cpuinfo ./results/results.csv "
refuse "a member that is not there" 2 "no member or folder 'nothing'" "$ASSAY" archive extract "$good" nothing -C no
check "makes no folder" test ! -e no
ln -s "$scratch/elsewhere" link
refuse "a folder that is a dangling link" 1 "" "$ASSAY" archive extract "$good" -C link
check "nothing is written through it" test ! -e elsewhere

# ---- signatures ------------------------------------------------------------------------------------------------
if command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N "" -f key; ssh-keygen -q -t ed25519 -N "" -f other
    echo "me@example.org $(cat key.pub)" >signers
    echo "you@example.org $(cat other.pub)" >strangers
    cp "$good" signed.zip
    check_shown "sign" "$ASSAY" archive sign signed.zip --key key
    check "names the signature" grep -qx signed.zip.sig shown
    check "and leaves the archive as it was" cmp "$good" signed.zip
    check_shown "verify --signers" "$ASSAY" archive verify signed.zip --signers signers
    check "says who signed" grep -q ", signed by me@example.org$" shown
    check "verify --signers --json" sh -c '"$1" archive verify --json signed.zip --signers signers | grep -q "\"signer\":\"me@example.org\""' - "$ASSAY"
    check "ssh-keygen says the same of the extracted folder" sh -c 'ssh-keygen -Y verify -f signers -I me@example.org -n file -s signed.zip.sig <small-1.0/manifest-sha256.txt'
    refuse "somebody else's signature" 5 "its signature is of nobody that the allowed signers have" "$ASSAY" archive verify signed.zip --signers strangers
    sed 's/^./0/; 1s/^0/1/' small-1.0/manifest-sha256.txt >forged
    ssh-keygen -q -Y sign -f key -n file forged 2>/dev/null && mv forged.sig signed.zip.sig
    refuse "a signature of other bytes" 5 "its signature is not of this manifest" "$ASSAY" archive verify signed.zip --signers signers
    ssh-keygen -q -Y sign -f key -n git small-1.0/manifest-sha256.txt 2>/dev/null && mv small-1.0/manifest-sha256.txt.sig signed.zip.sig
    refuse "a signature for another purpose" 5 "its signature is not of this manifest" "$ASSAY" archive verify signed.zip --signers signers
    echo garbage >signed.zip.sig
    refuse "no signature" 5 "'[^']*signed.zip.sig' has no SSH signature; 'assay archive sign' makes one" "$ASSAY" archive verify signed.zip --signers signers
    : >signed.zip.sig
    refuse "an empty signature" 5 "'[^']*signed.zip.sig' is empty; 'assay archive sign' makes one" "$ASSAY" archive verify signed.zip --signers signers
    "$ASSAY" archive sign signed.zip --key key >/dev/null
    for wrong in "" "# nobody" me@example.org "me@example.org ssh-ed25519 AAAAx" "$(cat key.pub)"; do
        echo "$wrong" >malformed
        refuse "signers '$wrong'" 2 "the allowed signers 'malformed' cannot be read: (line 1: (missing|invalid) key|there is no key in it); expected lines of a name and a public key, such as 'me@example.org ssh-ed25519 AAAA" \
            "$ASSAY" archive verify signed.zip --signers malformed
    done
    refuse "an archive without one" 5 "there is no signature: neither the file '[^']*small-1.0.zip.sig' nor the member" "$ASSAY" archive verify "$good" --signers signers
    refuse "no file of signers" 2 "cannot read the allowed signers 'nobody'" "$ASSAY" archive verify signed.zip --signers nobody
    refuse "no key" 2 "no key is given; expected --key FILE" "$ASSAY" archive sign signed.zip
    refuse "a key that is none" 2 "cannot sign 'signed.zip' with the key 'signers'" "$ASSAY" archive sign signed.zip --key signers
    if command -v zip >/dev/null; then
        ssh-keygen -q -Y sign -f key -n file small-1.0/manifest-sha256.txt 2>/dev/null
        (cd small-1.0 && zip -qr -X ../inside.zip ro-crate-metadata.json manifest-sha256.txt run.json .)
        check "a signature inside a zip that was made anew" "$ASSAY" archive verify inside.zip --signers signers
        rm -f small-1.0/manifest-sha256.txt.sig
    else skip "a signature inside a zip that was made anew" "zip is not installed"; fi
    head -c 5000 "$good" >cut.zip
    refuse "nobody signs what is damaged" 5 "truncated" "$ASSAY" archive sign cut.zip --key key
    check "and there is no signature of it" test ! -e cut.zip.sig
    refuse "without ssh-keygen" 1 "cannot run ssh-keygen" env PATH=/nonexistent "$ASSAY" archive sign signed.zip --key key
else skip "sign" "ssh-keygen is not installed"; fi

# ---- other programs --------------------------------------------------------------------------------------------
if command -v unzip >/dev/null; then check "unzip -t" unzip -tq "$good"
else skip "unzip -t" "unzip is not installed"; fi
if command -v bsdtar >/dev/null; then check "bsdtar" sh -c 'bsdtar -tf "$1" | grep -qx run.json' - "$good"
else skip "bsdtar" "bsdtar is not installed"; fi
if command -v python3 >/dev/null; then
    check "python's zipfile" python3 -c 'import sys, zipfile; sys.exit(zipfile.ZipFile(sys.argv[1]).testzip() is not None)' "$good"
    python3 -c '
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile("again.zip", "w", zipfile.ZIP_DEFLATED) as new:
    for entry in old.infolist():
        content = old.read(entry)
        entry.compress_type = zipfile.ZIP_DEFLATED
        new.writestr(entry, content)' "$good"
    check "what zipfile writes again, with folders deflated, is taken" "$ASSAY" archive verify again.zip
else skip "python's zipfile" "python3 is not installed"; fi
if command -v zip >/dev/null; then
    (cd small-1.0 && zip -qr -X ../again.zip ro-crate-metadata.json manifest-sha256.txt run.json .)
    check "an archive that zip made anew is still one" "$ASSAY" archive verify again.zip
else skip "an archive that zip made anew" "zip is not installed"; fi

# ---- what is refused -------------------------------------------------------------------------------------------
mkdir wrong
while IFS=$tab read -r name reason; do
    [ "$name" = sample ] && continue
    zip=$samples/invalid/$name.zip
    refuse "verify: $name" 5 "$(printf '%s' "$reason" | sed 's/[][().*^$+?{}|\\]/\\&/g')" "$ASSAY" archive verify "$zip"
    refuse "extract: $name" 5 "" "$ASSAY" archive extract "$zip" -C wrong/folder
    [ ! -e wrong/folder ] || report 1 "extract of $name wrote something"
done <"$samples/invalid/reasons.tsv"
check "nothing was written" test -z "$(ls -A wrong)"
check "nor beside it" test ! -e escaped.txt -a ! -e wrong/escaped.txt -a ! -e /tmp/absolute.txt
"$ASSAY" archive cat "$samples/invalid/hash-wrong.zip" results/results.csv >printed 2>/dev/null
check "cat prints nothing of a damaged member" test ! -s printed

head -c 5000 "$good" >half.zip
refuse "a truncated archive" 5 "truncated" "$ASSAY" archive verify half.zip
: >empty.zip
refuse "an empty file" 5 "not a zip file: empty" "$ASSAY" archive list empty.zip
echo "row,duration" >table.csv
refuse "a file that is no zip" 5 "table.csv: not a zip file" "$ASSAY" archive list table.csv
refuse "a missing file" 2 "No such file" "$ASSAY" archive verify absent.zip
refuse "a folder" 2 "'.' is a folder, but not that of a run: there is no file 'run.json'" "$ASSAY" archive verify .
# ---- The folder of a run ---------------------------------------------------------------------------------------
check_shown "list takes the folder of a run" "$ASSAY" archive list small-1.0
check "its files are named" grep -q " results/results.csv\$" shown
check "and it says that it is not sealed" grep -qx "verified  *no: the folder of a run has no hashes before it is sealed" shown
check_shown "as JSON" "$ASSAY" archive list small-1.0 --json
check "with each file" grep -q '"name": *"nodes/n-1.site.example/raw/cpuinfo"' shown
check "cat takes it too" sh -c '"$1" archive cat small-1.0 results/results.csv | cmp - small-1.0/results/results.csv' - "$ASSAY"
refuse "a file that is not there" 2 "there is no file 'nothing' in 'small-1.0'" "$ASSAY" archive cat small-1.0 nothing
ln -s / small-1.0/out
refuse "a way out through a link" 2 "there is no file 'out/etc/passwd' in 'small-1.0'" "$ASSAY" archive cat small-1.0 out/etc/passwd
rm small-1.0/out
refuse "a folder to be verified" 2 "small-1.0: this is the folder of a run, which has no hashes before it is sealed" "$ASSAY" archive verify small-1.0
refuse "or extracted" 2 "this is the folder of a run, whose files lie there" "$ASSAY" archive extract small-1.0 -C no
refuse "one of several" 5 "1 of 2 archives are refused" "$ASSAY" archive verify "$good" half.zip
check "each with its line" test "$(wc -l <.out)" -eq 2
refuse "one of several in JSON" 5 "1 of 2" "$ASSAY" archive verify --json half.zip "$good"
check "each with its line there too" test "$(grep -c '"verified":' .out)" -eq 2
peanut=$data/peanut/peanut_yeti.zip
if [ -f "$peanut" ]; then
    refuse "somebody else's zip" 5 "not an assay archive: no run.json in it" "$ASSAY" archive list "$peanut"
else skip "somebody else's zip" "the test data are not here"; fi

# ---- The command line of each row ------------------------------------------------------------------------------
cat >traced.yaml <<'Y'
experiment:
  name: traced
  factors: {n: {type: integer}, word: {type: text}}
  options: {library: {type: text, default: blis}, api_token: {type: text, default: hidden}}
  run: [printf, 'y %s %s\n', '{n}', '{word}']
  responses: {y: {pattern: '^y ([0-9]+)'}}
design: {factors: {n: [1, 2], word: ["a b", '$(c)']}, repetitions: 2}
probes: none
Y
traced=$("$ASSAY" run traced.yaml -q -o traced 2>err) || sed 's/^/# /' err
"$ASSAY" archive cat "$traced" journal.jsonl | grep unit-command >commands
is "the journal has the arguments of each unit, as it was started" \
    "$(jq -rn 'foreach inputs as $unit (null; $unit.arguments // .; "\($unit.order),\(.[2]),\(.[3])")' commands | sort)" \
    "$("$ASSAY" archive cat "$traced" results/results.csv | sed 1d | cut -d, -f3,10,11 | sort)"
is "... and once what all have in their environment, without what may be a secret" "$(jq -rc '.environment // empty | map(select(startswith("cpus=") | not))' commands)" '["library=blis"]'
check_shown "verify traces each row" "$ASSAY" archive verify "$traced"
check "... and counts the rows" grep -q ", 8 results traced$" shown

refuse "no action" 2 "" "$ASSAY" archive
refuse "another action" 2 "did you mean 'list'" "$ASSAY" archive lst "$good"
refuse "an option of another action" 2 "has no option '--folder'" "$ASSAY" archive list "$good" -C x
refuse "too few operands" 2 "expected an archive, or the folder of a run, and one of its members" "$ASSAY" archive cat "$good"
check "help" "$ASSAY" archive --help
if [ -w /dev/full ]; then refuse "a full standard output" 1 "No space left" sh -c '"$1" archive cat "$2" run.json >/dev/full' - "$ASSAY" "$good"
else skip "a full standard output" "/dev/full is not there"; fi
finish
