#!/bin/bash
# The house rules that a compiler does not check. TAP on stdout, one test a rule; every breach is named by file and
# line. tests/rules/self-test.sh plants a breach of each and expects it to be found.
#
#   rules.sh SOURCE CC [RULE...]
#
# What a rule must let pass is listed in exceptions.txt, "RULE PATH reason..."; one that is not needed is a breach too.
# shellcheck disable=SC2317 # the rules are called by name
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
source=${1:?usage: rules.sh SOURCE CC [RULE...]} cc=${2:?usage: rules.sh SOURCE CC [RULE...]}
shift 2
all="rooms libraries paths banned descriptors waits figures names guards headers length format"
rules=${*:-$all}
exceptions=${ASSAY_RULES_EXCEPTIONS:-$here/exceptions.txt}
cd "$source" || exit 1
scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-rules.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT

find engine plugins archive-format experiments tests examples -type f -name '*.[ch]' 2>/dev/null | sort >"$scratch/files"
[ -s "$scratch/files" ] || { echo "Bail out! no sources in $source"; exit 1; }

# Every line of code as "PATH:LINE:TEXT", comments gone; in `code` strings are emptied too, in `code-strings` kept.
# shellcheck disable=SC2016 # awk's dollars
strip() {
    xargs awk -v strings="$1" '
        FNR == 1 { comment = 0 }
        {
            rest = $0; out = ""
            while (rest != "") {
                if (comment) {
                    if (!match(rest, /\*\//)) break
                    rest = substr(rest, RSTART + 2); comment = 0; continue
                }
                if (!match(rest, /["\047]|\/\*|\/\//)) { out = out rest; break }
                mark = substr(rest, RSTART, 2)
                out = out substr(rest, 1, RSTART - 1)
                rest = substr(rest, RSTART)
                if (mark == "//") break
                if (mark == "/*") { comment = 1; rest = substr(rest, 3); continue }
                if (!match(rest, /^"([^"\\]|\\.)*"/) && !match(rest, /^\047([^\047\\]|\\.)*\047/)) { out = out rest; break }
                out = out (strings ? substr(rest, 1, RLENGTH) : substr(rest, 1, 1) substr(rest, 1, 1))
                rest = substr(rest, RLENGTH + 1)
            }
            print FILENAME ":" FNR ":" out
        }' <"$scratch/files"
}
strip 0 >"$scratch/code"
strip 1 >"$scratch/code-strings"
# "PATH LINE INCLUDED", the included name with its quotes or brackets.
sed -nE 's/^([^:]*):([0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*(["<][^">]*[">]).*/\1 \2 \3/p' \
    "$scratch/code-strings" >"$scratch/includes"

# ---- The rules: each prints its breaches as "PATH:LINE: what is wrong" ------------------------------------------

# Which of our folders may include which: a room only rooms of a lower level, as README's code map has them; and a
# sub-room only those before it in its row here. What is directly in such a room comes last.
sub_rooms='
engine/agent wire machine files controls probes load job serve daemon
engine/remote channel ssh launch link nodes
engine/run record campaign nodes state measure
'
rooms() {
    awk -v sub_rooms="$sub_rooms" '
        BEGIN {
            for (i = split(sub_rooms, rows, "\n"); i > 0; i--)
                for (k = split(rows[i], names, " "); k > 1; k--) { place[names[1] "/" names[k]] = k; ordered[names[1]] = 1 }
            split("foundation 0 documents 1 event-loop 1 numerics 1 expression 1 design 2 agent 2 archive-format 2 report 3 table 3 " \
                  "model 4 remote 3 testbed 4 plugin 5 run 5 fit 6 predict 6 next 6 history 6 analysis 6 command-line 7", words, " ")
            for (i = 1; i in words; i += 2) level[words[i]] = words[i + 1]
        }
        function room(path,   part) {
            split(path, part, "/")
            if (part[1] == "engine") return part[2]
            if (part[1] == "plugins") return part[2] == "interface" ? part[2] : "plugin " part[2]
            return part[1]
        }
        function sub_room(path,   part, count) {
            count = split(path, part, "/")
            return count > 3 ? part[1] "/" part[2] "/" part[3] : part[1] "/" part[2]
        }
        function order(name) { return name in place ? place[name] : name in ordered ? 99 : 0 }
        function check_order(from, to) {
            if (!order(from) && split(from, part, "/") > 2 && (part[1] "/" part[2]) in ordered)
                breach("the sub-room \"" from "\" has no place in rules.sh")
            else if (order(to) > order(from)) breach(from " comes before " to)
        }
        function breach(why) { print $1 ":" $2 ": includes " $3 ": " why }
        {
            from = room($1)
            if (from == "tests" || from == "examples" || $3 !~ /^("|<assay\/)/) next
            path = substr($3, 2, length($3) - 2)
            if (path ~ /^assay\//) path = "plugins/interface/" path # as it is installed
            to = room(path)
            if (to == from) { check_order(sub_room($1), sub_room(path)); next }
            if (to == "tests" || to == "examples") breach("nothing includes " to)
            else if (from == "experiments" && path !~ /\//) next # beside it, or shared: see paths
            else if (from == "experiments") breach("an experiment is built on a node, where nothing of ours is")
            else if (from == "interface") breach("plugins/interface is the whole of what a plugin sees")
            else if (from ~ /^plugin /) { if (to != "interface" && to != "numerics") breach("a plugin includes plugins/interface, engine/numerics and itself") }
            else if (to ~ /^plugin /) breach("a plugin is loaded, not included")
            else if (from == "documents" && path == "plugins/interface/assay/column.h") next # plugins and rooms have one
            else if (to == "interface") { if (from != "model" && from != "plugin" && level[from] < 6) breach("only model, plugin and the rooms above know plugins") }
            else if (!(from in level)) breach("the room \"" from "\" has no level in rules.sh")
            else if (!(to in level)) breach("the room \"" to "\" has no level in rules.sh")
            else if (from == "agent" && path == "engine/foundation/hash.h") breach("the agent has nothing but libc")
            else if (from == "agent" && to != "foundation" && to != "event-loop")
                breach("the agent includes foundation and event-loop only")
            else if (from == "archive-format" && to != "foundation" && to != "documents")
                breach("archive-format includes foundation and documents only")
            else if (from == "expression" && path == "engine/documents/unit.h") next # 64MiB is a number there
            else if (to == "agent" && !(from == "remote" && path ~ /\/(protocol|mailbox)[.]h$/))
                breach("of the agent only remote sees, and only the protocol and its mailbox")
            else if (level[to] >= level[from]) breach(from " (level " level[from] ") is not above " to " (level " level[to] ")")
        }' "$scratch/includes"
}

# External libraries have one home each; anything in brackets that is neither of them nor of libc is refused.
libraries() {
    local libc="alloca aio assert byteswap complex cpuid ctype dirent dlfcn elf endian err errno fcntl features fenv float fnmatch fts
        getopt glob grp iconv ifaddrs inttypes iso646 langinfo libgen limits link locale malloc math mntent netdb obstack
        poll pthread pty pwd regex sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio
        stdlib stdnoreturn string strings syslog termios threads time uchar ucontext unistd utime utmp wchar wctype"
    awk -v libc="$libc" '
        BEGIN { split(libc, names, /[ \n]+/); for (i in names) known["<" names[i] ".h>"] = 1 }
        function home(pattern, folder, name) {
            if (found || $3 !~ pattern) return
            found = 1
            if (index($1, folder) != 1) print $1 ":" $2 ": includes " $3 ": " name " has its one home in " folder
        }
        $3 !~ /^</ || $3 ~ /^<assay\// { next }
        ($3 in known) || $3 ~ /^<(sys|linux|asm|net|netinet|arpa|bits)\// || $3 ~ /^<[a-z0-9]*intrin[.]h>$/ { next }
        $1 ~ /^tests\// { next }
        {
            found = 0
            home("^<libssh/", "engine/remote/", "libssh")
            home("^<curl/", "engine/testbed/", "libcurl")
            home("^<(archive|archive_entry)[.]h>", $1 ~ /^engine\/remote\/link\// ? "engine/remote/link/" : "archive-format/", "libarchive")
            home("^<yaml[.]h>", "engine/documents/", "libyaml")
            home("^<cjson/", "engine/documents/", "cJSON")
            home("^<zlib[.]h>", $1 == "archive-format/member.c" ? $1 : "engine/documents/", "zlib")
            home("^<sqlite3[.]h>", "engine/history/", "SQLite")
            home("^<tre/", "engine/run/", "TRE")
            home("^<gsl/", "engine/numerics/", "GSL")
            home("^<(cblas|lapacke)[^/]*[.]h>", "engine/numerics/", "LAPACK")
            home("^<mpi[.]h>", "experiments/", "MPI")
            home("^<openssl/", "engine/foundation/hash.c", "libcrypto")
            home("^<mpi[.]h>", "experiments/", "MPI")
            if (!found) print $1 ":" $2 ": includes " $3 ": a library that rules.sh does not know"
        }' "$scratch/includes"
}

# Quoted includes are written from the root and exist.
paths() {
    while read -r path line name; do
        [[ $path == experiments/* && $name == \"* && -f experiments/kernels/${name//\"/} ]] && continue # what its source is
        case $name in
        \"*) name=${name#\"} name=${name%\"}
            case $name in
            *../* | ./*) echo "$path:$line: includes \"$name\": expected a path from the root" ;;
            */*) [ -f "$name" ] || echo "$path:$line: includes \"$name\": no such file" ;;
            *) # an experiment's own, beside it, or what kernels share: it is built on a node
                case $path in
                experiments/*) [ -f "${path%/*}/$name" ] || [ -f "experiments/kernels/$name" ] ||
                    echo "$path:$line: includes \"$name\": no such file beside it" ;;
                *) echo "$path:$line: includes \"$name\": expected a path from the root" ;;
                esac ;;
            esac ;;
        esac
    done <"$scratch/includes"
}

# Functions that cannot be used safely, or whose result cannot be checked.
banned() {
    awk '{
            path_line = $0; sub(/:[^:]*$/, "", path_line)
            match($0, /^[^:]*:[0-9]*:/); place = substr($0, 1, RLENGTH); text = " " substr($0, RLENGTH + 1)
            while (match(text, /[^A-Za-z0-9_.>](strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atoll|atof|system|popen|gets|setlocale)[ \t]*\(/)) {
                name = substr(text, RSTART + 1, RLENGTH - 1); sub(/[ \t]*\($/, "", name)
                if (name != "setlocale" || place !~ /^tests\//) print place " calls " name # a test may change the locale
                text = substr(text, RSTART + RLENGTH)
            }
        }' "$scratch/code"
}

# A descriptor that is not close-on-exec leaks into every program that we start.
descriptors() {
    grep -v '^tests/' "$scratch/code" | awk '
        function need(call, flag) {
            if (statement ~ ("[^A-Za-z0-9_.>]" call "[ \t]*\\(") && statement !~ flag) print place ": " call " without " flag
        }
        function never(call, instead) {
            if (statement ~ ("[^A-Za-z0-9_.>]" call "[ \t]*\\(")) print place ": " call "; expected " instead
        }
        BEGIN { statement = " " }
        {
            match($0, /^[^:]*:[0-9]*:/); at = substr($0, 1, RLENGTH - 1); text = substr($0, RLENGTH + 1)
            if (statement == " ") place = at
            statement = statement " " text
            if (text !~ /[;{}][ \t\\]*$/ && text !~ /^[ \t]*#/) next
            if (statement ~ /[^A-Z_](O_[A-Z]|0 *[,)])/) { need("open", "O_CLOEXEC"); need("openat", "O_CLOEXEC") } # flags in place
            need("mkostemp", "O_CLOEXEC"); need("pipe2", "O_CLOEXEC")
            need("socket", "SOCK_CLOEXEC"); need("socketpair", "SOCK_CLOEXEC"); need("accept4", "SOCK_CLOEXEC")
            need("eventfd", "EFD_CLOEXEC"); need("signalfd", "SFD_CLOEXEC"); need("timerfd_create", "TFD_CLOEXEC")
            need("epoll_create1", "EPOLL_CLOEXEC"); need("inotify_init1", "IN_CLOEXEC"); need("memfd_create", "MFD_CLOEXEC")
            never("pipe", "pipe2"); never("accept", "accept4"); never("dup", "fcntl with F_DUPFD_CLOEXEC")
            never("creat", "open"); never("mkstemp", "mkostemp"); never("epoll_create", "epoll_create1")
            never("inotify_init", "inotify_init1")
            statement = " "; place = ""
        }'
    grep -v '^tests/' "$scratch/code-strings" | grep -E '[^A-Za-z0-9_.>]fopen *\(' | grep -vE '"[rwa][b+]*e"' |
        sed -E 's/^([^:]*:[0-9]+):.*/\1: fopen without "e" in its mode/'
}

# Outside foundation/clock.c and the event loop nothing sleeps, for a test replaces the clock; and no test sleeps, or
# compares how long something took. What a script quotes is a workload's own business; loops until something are fine.
waits() {
    grep -vE '^(experiments|tests/benchmarks|tests/test-bed)/' "$scratch/code" |
        sed -nE 's/^([^:]*:[0-9]+):(.*[^A-Za-z0-9_.>])?((u|nano|clock_nano)?sleep) *\(.*/\1: calls \3; expected clock_sleep_ns, or an event that is waited for/p'
    grep -E '^tests/' "$scratch/code" |
        sed -nE 's/^([^:]*:[0-9]+):.*assert_(true|in_range)\(.*(_ns\(\) - |passed|elapsed|took)[^=]*<.*/\1: asserts how long something took/p'
    find tests -name '*.sh' -not -path 'tests/benchmarks/*' | sort | xargs awk '
        {
            text = $0
            gsub(/\\./, "", text); gsub(/"[^"]*"/, "", text); gsub(/\047[^\047]*\047/, "", text); sub(/(^|[ \t])#.*/, "", text)
            if (text !~ /(until|while) .*do sleep / && text ~ /(^|[;&|{(]|do|then|else)[ \t]*sleep[ \t]/) print FILENAME ":" FNR ": sleeps; expected eventually, or an event that is waited for"
            if ($0 ~ /(\$?SECONDS|date \+%s|\$took)[^"]*-(lt|le|gt|ge) |-(lt|le|gt|ge) [^"]*(SECONDS|date \+%s)/) print FILENAME ":" FNR ": compares how long something took"
        }'
}

# Benchmarks print by figure (options.sh), which ends them where a number was not found; programs in C have theirs at hand.
figures() {
    find tests/benchmarks -type f -not -name '*.[ch]' -not -name options.sh 2>/dev/null | sort | xargs -r grep -nHE '(echo|printf) *["\047]?figure ' |
        sed -E 's/^([^:]*:[0-9]+):.*/\1: prints a figure by itself; expected figure NAME VALUE UNIT/'
}

# A name that says what is in a file says more than these.
names() {
    grep -E '(^|[/-])(util|utils|common|helper|helpers|misc|manager)(-|\.|$)' "$scratch/files" |
        sed 's/$/:1: a file is named after the noun it is about/'
}

# ASSAY_<FOLDER>_<FILE>_H, after more of the path where the folder's name is one of several rooms; in tests anything
# may stand before the file's name.
guards() {
    grep '\.h$' "$scratch/files" | while read -r path; do
        folder=${path%/*} file=${path##*/}
        folder=$(tr 'a-z-' 'A-Z_' <<<"${folder##*/}") file=$(tr 'a-z-' 'A-Z_' <<<"${file%.h}")
        case $path in tests/*) guard="ASSAY_([A-Z0-9_]*_)?${file}_H" ;; *) guard="ASSAY_([A-Z0-9_]*_)?${folder}_${file}_H" ;; esac
        word=$(sed -nE "s/^#ifndef ($guard)\$/\1/p" "$path" | head -n 1)
        if [ -z "$word" ] || ! grep -qx "#define $word" "$path"; then
            echo "$path:1: no include guard $guard"
        fi
    done
}

# Every header compiles alone, so that who includes it first does not matter.
headers() {
    local flags=(-std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 '-DASSAY_VERSION="0"' -Wall -Wextra -Wno-unused-function -Wno-psabi -Werror)
    grep '\.h$' "$scratch/files" | while read -r path; do
        printf '#include "%s"\nextern int not_an_empty_unit;\n' "$path" >"$scratch/alone.c"
        "$cc" "${flags[@]}" -I. -Iplugins/interface -fsyntax-only "$scratch/alone.c" 2>"$scratch/errors" ||
            echo "$path:1: does not compile alone: $(grep -m1 error "$scratch/errors")"
    done
}

# A file of more lines has more than one noun in it.
length() {
    # shellcheck disable=SC2038 # our names have no blanks
    find engine plugins archive-format experiments tests examples .ci CMakeLists.txt -type f \
        \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name 'CMakeLists.txt' -o -path '.ci/*' \) 2>/dev/null |
        xargs wc -l | awk '$2 != "total" && $1 > 800 { print $2 ":801: " $1 " lines; expected at most 800" }'
}

# Laid out as .clang-format says, by the version that Debian 12 has: others differ in small things.
format() {
    case $(clang-format --version 2>/dev/null) in
    *"version 14."*) ;;
    *) echo "# SKIP no clang-format 14 here"; return ;;
    esac
    xargs clang-format --dry-run <"$scratch/files" 2>&1 |
        sed -nE 's/^([^:]*:[0-9]+):[0-9]+: warning: .*/\1: not laid out as .clang-format says/p' |
        awk -F: '!seen[$1]++'
}

# ---- Running them -----------------------------------------------------------------------------------------------

# Splits a rule's breaches into those that stand and, in `used`, the paths of exceptions that were needed.
judge() { # judge RULE
    awk -v rule="$1" -v used="$scratch/used" -v exceptions="$exceptions" '
        BEGIN { while ((getline <exceptions) > 0) if ($1 == rule) allowed[$2] = 1 }
        { path = $0; sub(/:.*/, "", path); if (path in allowed) { print path >used; next } print }
    ' "$scratch/breaches"
    grep "^$1 " "$exceptions" | while read -r _ path _; do
        grep -qxF "$path" "$scratch/used" 2>/dev/null || echo "$path:1: an exception to '$1' that is not needed"
    done
}

[ -e "$exceptions" ] || exceptions=/dev/null
failed=0 number=0
for rule in $rules; do
    case " $all " in *" $rule "*) ;; *) echo "Bail out! there is no rule '$rule'; there are: $all"; exit 1 ;; esac
    number=$((number + 1))
    : >"$scratch/used"
    $rule >"$scratch/breaches"
    if grep -q '^# SKIP' "$scratch/breaches"; then
        echo "ok $number - $rule $(cat "$scratch/breaches")"
        continue
    fi
    judge "$rule" >"$scratch/standing"
    if [ -s "$scratch/standing" ]; then
        failed=1
        echo "not ok $number - $rule"
        sed 's/^/# /' "$scratch/standing"
    else
        echo "ok $number - $rule"
    fi
done
echo "1..$number"
# No rule but a budget: lines of code of each room, without comments and blank lines.
sed -nE 's/^([^:]*)\/[^\/:]*:[0-9]+:.*[^[:space:]].*/\1/p' "$scratch/code" |
    awk -F/ '{ room = $1 "/" $2; count[room]++; all += room !~ /^tests/ } END { for (room in count) print "# " room ": " count[room]; print "# all but tests: " all }' | sort
exit $failed
