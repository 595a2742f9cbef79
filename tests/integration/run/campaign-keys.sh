#!/bin/bash
# Keys of a campaign that reach the archive or the nodes: description, author and license, workspace, packages, and the
# load of a warm-up.
. "$(dirname "$0")/../tap.sh"
mkdir "$scratch/work" "$scratch/bin"
export PATH=$scratch/bin:$PATH # the agent of this machine looks there too
campaign() { # campaign [PACKAGES]: with more keys on stdin
    { cat <<E2; cat; } >"$scratch/campaign.yaml"
experiment:
  name: keys
  packages: [$*]
  run: [sh, -c, 'pwd; echo x 1']
  responses: {x: {pattern: '^x ([0-9]+)'}}
design: {repetitions: 1}
probes: none
E2
}
run() { archive=$("$ASSAY" run "$scratch/campaign.yaml" -q -o "$scratch/runs" 2>"$scratch/err") || sed 's/^/# /' "$scratch/err"; }
cat_of() { "$ASSAY" archive cat "${archive:-none}" "$1"; }

campaign <<E2
description: What each key is for.
author: Ada Lovelace
license: https://creativecommons.org/publicdomain/zero/1.0/
workspace: $scratch/work
E2
run
cat_of ro-crate-metadata.json | tr -d ' \n' >"$scratch/crate"
check "the description is that of the archive" grep -q '"@id":"./",.*"description":"Whateachkeyisfor."' "$scratch/crate"
check "... and its license" grep -q '"license":{"@id":"https://creativecommons.org/publicdomain/zero/1.0/"}' "$scratch/crate"
check "... and its author" sh -c "grep -q '\"author\":{\"@id\":\"#agent\"}' '$scratch/crate' &&
    grep -q '\"@id\":\"#agent\",\"@type\":\"Person\",\"name\":\"AdaLovelace\"' '$scratch/crate'"
cat_of README.md >"$scratch/readme"
check "people read them too" sh -c "grep -qx 'What each key is for.' '$scratch/readme' && grep -q 'Licence: .*/zero/1.0/' '$scratch/readme'"
check "units work in the workspace" sh -c "'$ASSAY' archive cat '$archive' results/raw/1-$(uname -n)-all.out | grep -q '^$scratch/work/'"
check "... of which nothing is left" test -z "$(ls -A "$scratch/work")"

# No licence is invented.
campaign </dev/null
run
cat_of ro-crate-metadata.json >"$scratch/crate"
none="no licence was given: all rights stay with the authors"
check "without a license the crate says that none was given" test "$(jq -r '(.["@graph"] | map({(.["@id"]): .}) | add) as $all |
    $all[$all["./"].license["@id"]].name' "$scratch/crate")" = "$none"
check "... and names nobody else's" sh -c "! grep -qi 'creativecommons\|CC BY' '$scratch/crate'"
cat_of README.md >"$scratch/readme"
check "... and so does what people read" grep -q "Licence: $none\$" "$scratch/readme"

# Programs that keep the processors busy: each is called, and the run does not go on without it.
for load in stress stress-ng; do
    if ! program=$(command -v $load); then
        skip "a warm-up by $load" "it is not installed"
        continue
    fi
    printf '#!/bin/sh\necho "$0 $*" >>%s/loads\nexec %s "$@"\n' "$scratch" "$program" >"$scratch/bin/$load"
    chmod +x "$scratch/bin/$load"
    campaign <<<"warm-up: {time: 200 ms, load: $load}"
    run
    check "a warm-up by $load" grep -q "\"packages\": *{\"$load\"" <(cat_of software/versions.json | tr -d ' \n')
    check "... keeps every processor busy" grep -qx "$scratch/bin/$load --cpu $(nproc --all)" "$scratch/loads"
    printf '#!/bin/sh\nexit 7\n' >"$scratch/bin/$load"
    campaign <<<"warm-up: {time: 1 min, load: $load}"
    refuse "... and its failure is named" 3 "the load exited with status 7" "$ASSAY" run "$scratch/campaign.yaml" -q -o "$scratch/failed"
    rm "$scratch/bin/$load"
done

# Packages that no mirror has, and an installation that does nothing.
cat >"$scratch/bin/apt-get" <<'E2'
#!/bin/sh
case $* in *install*) echo "E: Unable to locate package assay-nowhere" >&2; exit 100 ;; esac
E2
printf '#!/bin/sh\nshift\nexec "$@"\n' >"$scratch/bin/sudo"
chmod +x "$scratch/bin/apt-get" "$scratch/bin/sudo"
campaign libc6, assay-nowhere </dev/null
missing="needs packages that are missing \(node $(uname -n): assay-nowhere\) and cannot be installed: on node $(uname -n), "
refuse "a package that cannot be installed is named, with its node and what apt-get says" 3 \
    "$missing.*apt-get .*install.* exited with status 100: E: Unable to locate package" \
    "$ASSAY" run "$scratch/campaign.yaml" -o "$scratch/failed"
printf '#!/bin/sh\n' >"$scratch/bin/apt-get"
refuse "... and so is one that is not there afterwards" 3 "on node $(uname -n), package assay-nowhere is still missing" \
    "$ASSAY" run "$scratch/campaign.yaml" -o "$scratch/failed"
finish
