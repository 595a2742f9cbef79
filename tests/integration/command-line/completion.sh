#!/bin/bash
# Completion in bash and zsh, which is made of the pages that the parser goes by.
. "$(dirname "$0")/../tap.sh"
script=$ASSAY_BUILD/share/bash-completion/completions/assay
cd "$scratch" || exit 1
mkdir -p runs/one runs/two
touch campaign.yaml list.txt

# complete WORD...: what bash offers for the last word, one a line
complete_words() {
    # shellcheck disable=SC2016 # the inner shell's
    bash -c '. "$1"; shift; COMP_WORDS=(assay "$@"); COMP_CWORD=$#; _assay; printf "%s\n" "${COMPREPLY[@]}"' - "$script" "$@" | sort | paste -sd' '
}
# The commands of `assay --help`, and the options of a command's.
commands() { "$ASSAY" --help | sed -n '/^Measuring:/,/^Options:/s/^  \([a-z]\{3,\}\) .*/\1/p' | sort | paste -sd' '; }
options() { "$ASSAY" "$1" --help | sed -n '/^Options/,$s/^  \(-[a-zA-Z],\|   \) \(--[a-z-]*\).*/\2/p' | sort -u | paste -sd' '; }
long_options() { complete_words "$1" --; }

is "commands" "$(complete_words '')" "$(commands)"
is "... by their first letters" "$(complete_words re)" "release report reserve resume"
for verb in list run nodes fit history; do
    is "options of $verb are those of its help" "$(long_options $verb)" "$(options $verb)"
done
is "one option by its beginning" "$(complete_words list --pr)" "--prune"
is "actions" "$(complete_words model '')" "check eval show table"
is "... by their first letters, behind options with arguments" "$(complete_words nodes -w 'a[1-2]' --user me c)" "capture clean controls"
is "an action or a file" "$(complete_words experiments l)" "list list.txt"
is "runs" "$(complete_words watch '')" "runs/one runs/two"
is "... of a folder" "$(complete_words status --json runs/t)" "runs/two"
is "the argument of an option is left to readline: a file" "$(complete_words run --output '')" ""
is "operands too" "$(complete_words run camp)" ""
is "help has commands and topics" "$(complete_words help c)" "campaign compare"
if command -v zsh >/dev/null; then check "zsh reads its own" zsh -n "$ASSAY_BUILD/share/zsh/site-functions/_assay"
else skip "zsh reads its own" "no zsh"; fi
finish
