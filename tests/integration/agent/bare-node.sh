# The agent builds with the one command of its README, needs nothing but a kernel, and passes the same tests as ours.
. "$(dirname "$0")/../tap.sh"

command=$(sed -n '/^```sh$/,/^```$/p' "$ASSAY_SOURCE/engine/agent/README.md" | grep '^cc ')
check "the README has one command" test "$(printf '%s\n' "$command" | wc -l)" -eq 1 -a -n "$command"

build() { (cd "$ASSAY_SOURCE" && sh -c "${command/-o assay-agent/-o $scratch/assay-agent}"); }
check "it builds" build
is "without a warning" "$(cat "$scratch/.err")" ""
check "it says its version" sh -c "'$scratch/assay-agent' --version | grep -q '^assay-agent .* protocol 3$'"
no_interpreter() { ! readelf -l "$scratch/assay-agent" | grep -q INTERP; }
if command -v readelf >/dev/null; then check "it is static" no_interpreter; else skip "it is static" "no readelf"; fi

in_empty_root() { # nothing there but the agent: no library, no /proc, no shell
    mkdir -p "$scratch/root/dev" && cp "$scratch/assay-agent" "$scratch/root/" &&
        chroot "$scratch/root" /assay-agent --version
}
if [ "$(id -u)" -eq 0 ]; then check "it runs in an empty root" in_empty_root
else skip "it runs in an empty root" "needs root for chroot"; fi

for test in agent-serve agent-daemon agent-files agent-controls-machines agent-controls-killed agent-broken-links remote-commands remote-run-directory remote-node-facts; do
    program=$ASSAY_BUILD/tests/unit/test-$test
    if [ -x "$program" ]; then check "it passes $test" env ASSAY_AGENT="$scratch/assay-agent" "$program"
    else skip "it passes $test" "$program is not built"; fi
done

refuse "no directory" 2 'no --directory; see --help' "$scratch/assay-agent"
refuse "an unknown option" 2 "unknown option '--what'; see --help" "$scratch/assay-agent" --what
refuse "an option without a value" 2 "the option '--directory' lacks its value; see --help" "$scratch/assay-agent" --directory
from_file() { "$scratch/assay-agent" --directory "$scratch/run" <"$scratch/.err"; }
refuse "a file for stdin" 1 'stdin is not a pipe or a socket' from_file
check "help" "$scratch/assay-agent" --help
finish
