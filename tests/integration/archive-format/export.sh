#!/bin/bash
# Archives for programs that do not know assay: bags, data packages, folders, and what Zenodo asks for.
. "$(dirname "$0")/../tap.sh"
cd "$scratch" || exit 1
good=$ASSAY_SOURCE/archive-format/samples/valid/small-1.0.zip

cat >toy.yaml <<'E'
name: Toy
testbed: local
probes: {period: 1 s}
author: Doe, Jane
description: a "toy" <of> two lines
experiment:
  name: toy
  factors: {n: {type: integer}}
  responses: {y: {pattern: '^y ([0-9.]+)', unit: s}}
  run: 'echo y $n.$repetition'
design: {factors: {n: [1, 2, 3]}, repetitions: 3}
E
archive=$("$ASSAY" run toy.yaml -q -o runs 2>err) || sed 's/^/# /' err
name=$(basename "$archive" .zip)
id=$("$ASSAY" archive cat "$archive" run.json | jq -r .run_id)
hash=$(sha256sum <"$archive") hash=${hash%% *}
export_() { "$ASSAY" archive export "$@"; }
mkdir plain && unzip -q "$archive" -d plain

# ---- BagIt
check "a bag" export_ bagit "$archive"
report $(output "^$name.bag$"; echo $?) "... whose folder is printed"
for sum in 512 256; do
    check "SHA-$sum of each file is right" sh -c "cd '$name.bag' && sha${sum}sum --quiet -c manifest-sha$sum.txt"
    check "... and of each tag file" sh -c "cd '$name.bag' && sha${sum}sum --quiet -c tagmanifest-sha$sum.txt"
    is "... all of which are there" "$(cut -c $((sum / 4 + 3))- "$name.bag/manifest-sha$sum.txt" | sort)" "$(cd "$name.bag" && find data -type f | sort)"
    is "... and the tag files" "$(cut -c $((sum / 4 + 3))- "$name.bag/tagmanifest-sha$sum.txt" | xargs)" \
        "bag-info.txt bagit.txt manifest-sha256.txt manifest-sha512.txt"
done
check "the payload is the archive, with its crate" diff -r plain "$name.bag/data"
is "the declaration is that of RFC 8493" "$(<"$name.bag/bagit.txt")" $'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8'
is "the bag says which run it is, and how much" "$(grep -E '^(External|Payload)' "$name.bag/bag-info.txt")" \
    "External-Identifier: urn:uuid:$id
Payload-Oxum: $(find plain -type f -printf '%s\n' | awk '{bytes += $1} END {printf "%d.%d", bytes, NR}')"
refuse "not twice to one place" 2 "'$name.bag' exists; expected the name of a new folder" export_ bagit "$archive"
refuse "not into a folder that takes none" 2 "cannot make the folder '/sys/bag': (Operation not permitted|Permission denied|Read-only file system)$" \
    export_ bagit "$archive" -o /sys/bag
refuse "not without a name" 2 "the name of the folder is empty; expected that of a new folder" export_ bagit "$archive" -o ''

# ---- Frictionless
check "a data package" export_ frictionless "$archive" -o tables/
is "it has the tables that datapackage.json names, and those of the probes" "$(cd tables && find . -type f -printf '%P\n' | sort)" \
    "$(cd plain && printf '%s\n' datapackage.json design.csv results/results.csv nodes/*/probes/*.csv | sort)"
is "... each with its size and hash" "$(jq -r '.resources[] | "\(.hash) \(.bytes) \(.path)"' tables/datapackage.json | sort)" \
    "$(cd tables && find . -name '*.csv' -printf '%P\n' | while read -r file; do
        echo "sha256:$(sha256sum <"$file" | cut -c 1-64) $(stat -c %s "$file") $file"; done | sort)"
is "... and a name that the standard takes" "$(jq -r '.name, .id, (.resources[].name | select(test("^[-a-z0-9._]+$") | not))' tables/datapackage.json)" \
    "toy
urn:uuid:$id"
is "... with the columns' units" "$(jq -r '.resources[] | select(.path == "results/results.csv").schema.fields[] | select(.name == "y").unit' tables/datapackage.json)" s
check "... and the tables' bytes" cmp tables/results/results.csv plain/results/results.csv

# ---- A folder
check "a folder" export_ folder "$archive" -o folder
check "... is what unzip gives" diff -r plain folder

sh -c 'echo $$' >gone
mkdir -p ".killed.$(<gone).part/x" ".killed.$$.part" .killed.mine.part
check "an export after one that was killed" export_ folder "$archive" -o killed
is "... removes what that left, and nothing else" "$(ls -d .killed.* | xargs)" "$(printf '%s\n' ".killed.$$.part" .killed.mine.part | xargs)"
rmdir .killed.*

# ---- What is refused leaves nothing
refuse "another form" 2 "an archive cannot be exported as 'tar'; expected bagit, frictionless or folder" export_ tar "$archive"
refuse "the folder of a run" 2 "this is the folder of a run, which has no hashes" export_ bagit "${archive%.zip}" -o no
refuse "a place that is none" 2 "cannot make the folder 'none/no': No such file" export_ folder "$archive" -o none/no
"$ASSAY" archive extract "$good" -C made >/dev/null
for form in bagit frictionless folder; do
    for sample in hash-wrong path-escape kind-symlink bomb-lying crc-wrong; do
        refuse "$form: $sample" 5 "" export_ "$form" "$ASSAY_SOURCE/archive-format/samples/invalid/$sample.zip" -o no
    done
    refuse "$form: a full disk" 1 "File too large" sh -c 'trap "" XFSZ; ulimit -f 1; "$@"' - "$ASSAY" archive export "$form" "$archive" -o no
done
truncated=$scratch/half.zip
head -c 5000 "$archive" >"$truncated"
refuse "a truncated archive" 5 "truncated" export_ bagit "$truncated" -o no
is "nothing is left of these" "$(ls -d no* .no* escaped* 2>/dev/null)" ""

# ---- Zenodo
publish() { "$ASSAY" archive publish "$@"; }
refuse "without a licence" 2 "the archive does not say under which licence it is; add --license ID" publish "$archive" -o record
check "the record" publish "$archive" -o record --license CC-BY-4.0 --keyword HPC --title 'A toy'
is "its metadata" "$(jq -c '.metadata | [.title, .upload_type, .access_right, .license, .creators, .keywords, .prereserve_doi]' record/zenodo.json)" \
    '["A toy","dataset","open","cc-by-4.0",[{"name":"Doe, Jane"}],["toy","HPC"],true]'
is "its description is HTML" "$(jq -r .metadata.description record/zenodo.json | sed 's,</p>.*,,')" '<p>a &quot;toy&quot; &lt;of&gt; two lines'
check "... with the run and the hash" contains <(jq -r .metadata.description record/zenodo.json) "The run Toy \($id\) .* 9 of 9 units done\. .*SHA-256 of $name.zip: $hash\."
check "the checklist has what was checked, and what was not" contains record/CHECKLIST.md '^- \[x\] Every byte of the archive'
check "... that the archive states no licence" contains record/CHECKLIST.md '^- \[ \] The archive itself states no licence.*`cc-by-4.0`'
check "... and how to upload it" contains record/CHECKLIST.md "curl -f --upload-file $(realpath "$archive") .*/$name.zip"
is "people, affiliations and ORCID" "$(publish "$archive" -o other --license https://creativecommons.org/publicdomain/zero/1.0/ \
    --creator 'Doe, Jane; Inria, Grenoble; 0000-0002-1825-0097' --creator 'John Roe;https://orcid.org/0000-0002-1694-233X' >/dev/null; jq -c '.metadata | .creators, .license' other/zenodo.json)" \
    '[{"name":"Doe, Jane","affiliation":"Inria, Grenoble","orcid":"0000-0002-1825-0097"},{"name":"John Roe","orcid":"0000-0002-1694-233X"}]
"cc0-1.0"'
check "a name that is not written as Zenodo cites it" contains other/CHECKLIST.md '^- \[ \] `John Roe` is not written as FAMILY NAME'
refuse "a mistyped ORCID" 2 "the ORCID '0000-0002-1825-0079' is mistyped" publish "$archive" -o no --creator 'Doe, Jane; 0000-0002-1825-0079' --license mit
refuse "no person" 2 "creator ';x' is not a person; expected 'FAMILY NAME, GIVEN NAMES; AFFILIATION; ORCID'" publish "$archive" -o no --creator ';x' --license mit
refuse "a licence that is none" 2 "the licence 'nonsense' is not known here; expected --license ID, one of cc-by-4.0, .*, cecill-c, or --license https://" \
    publish "$archive" -o no --license nonsense
check "the address of one that is not in the list" publish "$archive" -o addressed --license https://example.org/licence
is "... is another open one" "$(jq -r .metadata.license addressed/zenodo.json)" other-open
check "... whose address is in the description" contains <(jq -r .metadata.description addressed/zenodo.json) '<p>Licence: https://example.org/licence</p>'
check "... and in the checklist" contains addressed/CHECKLIST.md '^- \[ \] `https://example.org/licence` is no licence that is known here'
is "an address of Creative Commons" "$(publish "$archive" -o by-sa --license https://creativecommons.org/licenses/by-sa/4.0/deed.en >/dev/null; jq -r .metadata.license by-sa/zenodo.json)" cc-by-sa-4.0
refuse "a licence with a blank" 2 "the licence 'CC BY' is not known here" publish "$archive" -o no --license 'CC BY'
refuse "an archive without an author" 2 "does not say who made it; add --creator" publish "$good" -o no --license mit
refuse "a damaged archive" 5 "" publish "$ASSAY_SOURCE/archive-format/samples/invalid/hash-wrong.zip" -o no --license mit --creator x
is "which leave nothing" "$(ls -d no* 2>/dev/null)" ""
printf '\nlicense: https://spdx.org/licenses/MIT.html\n' >>toy.yaml
sed -i 's,^author: .*,author: "Doe\, Jane <https://orcid.org/0000-0002-1825-0097>",' toy.yaml
sed -i 's/run: .*/run: "exit 1"/' toy.yaml
"$ASSAY" run toy.yaml -q -o failed >/dev/null 2>&1
check "a run that failed" publish failed/*.zip -o failed-record
is "... its own licence and author" "$(jq -c '.metadata | .license, .creators' failed-record/zenodo.json)" \
    '"mit"
[{"name":"Doe, Jane","orcid":"0000-0002-1825-0097"}]'
check "... is said to have" contains failed-record/CHECKLIST.md '^- \[ \] The run is failed: .*Say so in the description'
check "another licence than the archive's" publish failed/*.zip -o third --license cc-by-4.0
check "... is said" contains third/CHECKLIST.md '^- \[ \] The archive itself says `https://spdx.org/licenses/MIT.html`, and the record will say `cc-by-4.0`'
finish
