# The frame of the command line: help, man pages, typing errors, exit codes, and what happens to standard output.
. "$(dirname "$0")/../tap.sh"

says() { # says PATTERN COMMAND...: succeeds and its standard output matches
    local pattern=$1; shift
    "$@" >"$scratch/said" || return
    grep -qE -- "$pattern" "$scratch/said" || { head -5 "$scratch/said" >&2; return 1; }
}

check "--version says the version" says '^assay [0-9]+\.[0-9]+\.[0-9]+$' "$ASSAY" --version
check "--help lists the commands" says '^  help  ' "$ASSAY" --help
check "--help lists the exit codes" says '^  5  .*archive' "$ASSAY" --help
check "help is --help" sh -c '"$1" help >"$2/a" && "$1" --help >"$2/b" && cmp "$2/a" "$2/b"' - "$ASSAY" "$scratch"
check "help VERB is VERB --help" \
    sh -c '"$1" help help >"$2/a" && "$1" help --help >"$2/b" && cmp "$2/a" "$2/b"' - "$ASSAY" "$scratch"

refuse "no command" 2 "^assay: no command given; 'assay --help' lists them$" "$ASSAY"
refuse "a mistyped command" 2 "^assay: there is no command 'hlep'; did you mean 'help'\?$" "$ASSAY" hlep
while IFS='|' read -r words now; do
    # shellcheck disable=SC2086 # words are separate arguments
    refuse "a former name: $words" 2 "did you mean '$now'\?$" "$ASSAY" $words
done <<'END'
attach run|watch
fetch run|archive fetch
fit compare a.json b.json|assay compare
generate cluster|export
status --follow run|assay watch
END
refuse "an unheard-of command" 2 "^assay: there is no command 'zzzzzz'; 'assay --help' lists them$" "$ASSAY" zzzzzz
refuse "an option instead of a command" 2 "unknown option '--frob'; expected a command" "$ASSAY" --frob
refuse "a mistyped option" 2 "^assay: help: unknown option '--mann'; did you mean '--man'\?$" "$ASSAY" help --mann
refuse "an argument to a switch" 2 "option '--man' takes no argument; found 'x'" "$ASSAY" help --man=x
refuse "an operand too many" 2 "^assay: help: unexpected operand 'run'; usage: assay help" "$ASSAY" help help run
refuse "a control character is not sent to the terminal" 2 "no command '.x1b\[31mred.xc2.x9b'" \
    "$ASSAY" "$(printf '\033[31mred\302\233')"

# Standard output that cannot be written is a failure, whatever was printed.
refuse "a full disk" 1 "cannot write standard output: No space left on device" sh -c '"$1" --help >/dev/full' - "$ASSAY"
refuse "a full disk, of a page that is longer than a buffer of stdio" 1 "cannot write standard output: No space left on device" sh -c '"$1" run --help >/dev/full' - "$ASSAY"
refuse "a closed standard output" 1 "cannot write standard output" sh -c '"$1" --help >&-' - "$ASSAY"
check "a reader that went away: exit code 1, no signal, no chatter" bash -c '
    mkfifo "$2/pipe"; exec 3<>"$2/pipe" 4>"$2/pipe"; exec 3<&-
    "$1" --help >&4 2>"$2/chatter"; [ $? -eq 1 ] && [ ! -s "$2/chatter" ]' - "$ASSAY" "$scratch"
check "closed standard input and error do no harm" sh -c '"$1" --version <&- 2>&-' - "$ASSAY"
check "a locale with a decimal comma changes nothing" \
    sh -c 'LC_ALL=de_DE.UTF-8 "$1" --help >"$2/a" && LC_ALL=C "$1" --help >"$2/b" && cmp "$2/a" "$2/b"' - "$ASSAY" "$scratch"

# The same manual in every form, for every command that there is.
widest() { awk '{ if (length($0) > most) most = length($0) } END { print most + 0 }'; }
verbs=$("$ASSAY" --help | sed -n '/^Measuring:/,/^Options:/s/^  \([a-z]*\)  .*/\1/p')
check "the commands were found" test -n "$verbs"
for verb in $verbs; do
    check "$verb --help fits 80 columns" sh -c '[ "$1" -le 80 ]' - "$("$ASSAY" "$verb" --help | widest)"
    check "$verb has its summary and its usage" says "^Usage: assay $verb" "$ASSAY" help "$verb"
    check "the build made assay-$verb.1" test -s "$ASSAY_BUILD/share/man/man1/assay-$verb.1"
done
if command -v script >/dev/null; then
    narrow() { script -qec "stty cols 50; '$ASSAY' --help" /dev/null | tr -d '\r' | grep -v '^    assay' | widest; }
    check "help is wrapped to the terminal" sh -c '[ "$1" -le 50 ] && [ "$1" -gt 40 ]' - "$(narrow)"
else skip "help is wrapped to the terminal" "no script(1)"; fi
cat >"$scratch/odd.txt" <<'PAGE'
an odd page
Usage: assay odd [FILE]
Operands: 0 to 1

A line, and
.start of another with a back\slash.

    example --kept  as it is

Options:
-o, --output FILE
    Where to write.
--aside[=WHERE]
    Elsewhere.
PAGE
pages=$(dirname "$0")/../../../engine/command-line/pages
awk -v version=1 -f "$pages/man-page.awk" "$scratch/odd.txt" "$pages/assay.txt" >"$scratch/odd.1"
in_page() { check "a man page has $1" grep -qxF -- "$2" "$scratch/odd.1"; }
in_page "text that is no request" '\&.start of another with a back\eslash.'
in_page "examples as they are" '    example \-\-kept  as it is'
in_page "options with letters" '\fB\-o\fR, \fB\-\-output\fR \fIFILE\fR'
in_page "switches that may have a value" '\fB\-\-aside\fR\fI[=WHERE]\fR'
in_page "the exit codes" 'done'
check "help --man prints the page" sh -c '"$1" help --man fit | cmp - "$2"' - "$ASSAY" "$ASSAY_BUILD/share/man/man1/assay-fit.1"
check "what follows an example is a paragraph of its own" sh -c '[ "$(grep -A1 "^\.EE" "$1" | grep -vx -e "\.EE" -e -- -e .PP -e ".SH OPTIONS")" = "" ]' - "$ASSAY_BUILD/share/man/man1/assay-archive.1"
if command -v groff >/dev/null; then
    for page in "$ASSAY_BUILD"/share/man/man1/*.1; do
        check "groff finds nothing wrong in ${page##*/}" sh -c '
            groff -man -ww -z "$1" 2>"$2/warnings" && ! grep . "$2/warnings" >&2' - "$page" "$scratch"
    done
else skip "groff finds nothing wrong in the man pages" "no groff"; fi
finish
