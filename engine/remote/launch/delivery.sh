# shellcheck shell=sh
# Runs on a node, by its sh, whichever that is (dash, bash, busybox): finds or makes a private folder that can be
# written and executed from, and the agent in it.
#
#   VERB UNIQUE INDEX BINARY SOURCE MACHINE
#
# UNIQUE: 16 hexadecimal digits that no other delivery has. INDEX: a folder's number. BINARY, SOURCE: their SHA-256, or
# "-". MACHINE: as `uname -m` has it, of the binary. What follows the script on stdin is for the verb.
#
#   find     the first folder from INDEX on that will do, and what is there
#   put      stdin is the binary: into folder INDEX, under a name of its own, checked, tried, renamed
#   build    stdin is sh that unpacks the sources: built there, tried, renamed
#
# Every line that is for the engine begins with "assay-UNIQUE ": login scripts may print too.
#
#   unfit PATH: REASON             folder INDEX PATH
#   agent HASH PATH                there, its hash right, and it runs
#   damaged PATH: REASON           there, and not to be trusted: gone, or to be replaced
#   unusable REASON                the binary is not for this machine, or it is there and does not run
#   failed KIND REASON             KIND: folder (try another), run (it does not run here), compiler (cannot be built),
#                                  tools (this node cannot be served)

LC_ALL=C
export LC_ALL
umask 077
verb=$1 unique=$2 index=$3 binary=$4 source=$5 machine=$6
newline='
'
uid=$(id -u)
here=$(uname -m)

say() {
    printf 'assay-%s %s\n' "$unique" "$*"
}

# The last part of a message's first line: what the system said, without who said it of what.
shorten() {
    reason=${reason%%"$newline"*}
    reason=${reason##*: }
}

# Everything that was sent must be read, or the engine hears of a broken pipe and not of the reason.
drain() {
    cat >/dev/null
}

fail() {
    [ -z "$new" ] || rm -f "$new"
    [ -z "$work" ] || rm -rf "$work"
    say "failed $*"
    drain
    exit 0
}

trap 'rm -rf "$new" "$work" "$probe"; exit 1' HUP INT TERM PIPE

# ---- folders

# Sets folder, and parent when that may be made. Fails when there is no folder of that number.
name_folder() {
    parent=
    case $1 in
    1)
        case $XDG_CACHE_HOME in /*) ;; *) return 1 ;; esac
        parent=$XDG_CACHE_HOME
        folder=$parent/assay
        ;;
    2)
        case $HOME in /*) ;; *) return 1 ;; esac
        parent=$HOME/.cache
        [ "$parent" != "$XDG_CACHE_HOME" ] || return 1
        folder=$parent/assay
        ;;
    3) folder=/tmp/assay-$uid ;;
    4) folder=/var/tmp/assay-$uid ;;
    5) folder=/dev/shm/assay-$uid ;;
    6) folder=/run/user/$uid/assay ;;
    *) return 1 ;;
    esac
}

# Sets mode and owner of $1, a link for itself.
look_at() {
    # shellcheck disable=SC2046 # its words are wanted
    set -- $(ls -ldn "$1" 2>/dev/null)
    mode=$1 owner=$3
}

# Root's programs lie below no folder, and behind no link, that another user owns or may write to: whose link it is
# counts, and where it leads is looked at. What is not there yet is made by us. Sets reason.
check_above() {
    look_at /
    above=$owner
    for part in "$1" "$(cd -P "$1" 2>/dev/null && pwd -P)"; do
        while [ -n "$part" ]; do
            look_at "$part"
            case $owner in '' | 0 | "$above" | "$SUDO_UID") ;; *)
                reason="$part belongs to another user (uid $owner)"
                return 1
                ;;
            esac
            case $mode in
            l* | ?????-??-* | ?????????[tT]*) ;;
            ?*)
                reason="others could write to $part ($mode)"
                return 1
                ;;
            esac
            part=${part%/*}
        done
    done
}

# There, and nobody else's: or the reason why not. In /tmp anybody may have put something of that name.
make_folder() {
    case $folder in
    *[!A-Za-z0-9_@%+=:,./-]*)
        reason="its name has characters that no command of assay's may have"
        return 1
        ;;
    esac
    if [ "$index" = 2 ] && [ ! -d "$HOME" ]; then
        reason="there is no home folder"
        return 1
    fi
    [ "$uid" != 0 ] || check_above "${folder%/*}" || return 1
    if [ -n "$parent" ] && ! reason=$(mkdir -p "$parent" 2>&1); then
        shorten
        return 1
    fi
    [ "$uid" != 0 ] || [ -z "$parent" ] || check_above "$parent" || return 1
    if [ ! -d "${folder%/*}" ]; then
        reason="there is no ${folder%/*}"
        return 1
    fi
    if [ ! -e "$folder" ] && [ ! -h "$folder" ]; then
        # Another delivery may make it at this very moment.
        reason=$(mkdir -m 700 "$folder" 2>&1) || [ -d "$folder" ] || {
            shorten
            return 1
        }
    fi
    if [ -h "$folder" ]; then
        reason="it is a link"
        return 1
    elif [ ! -d "$folder" ]; then
        reason="it is not a folder"
        return 1
    fi
    look_at "$folder"
    if [ "$owner" != "$uid" ]; then
        reason="it belongs to another user (uid $owner)"
        return 1
    fi
    case $mode in drwx------*) return 0 ;; esac
    before=$mode
    reason=$(chmod 700 "$folder" 2>&1)
    look_at "$folder"
    case $mode,$before in
    drwx------*,?????-??-*) return 0 ;;
    drwx------*)
        # Whoever could write to it may still have a file of it open.
        rm -rf "$folder"/agent-* "$folder"/built-*
        say "damaged $folder: others could write to it ($before)"
        return 0
        ;;
    esac
    shorten
    reason="others have access to it ($mode)${reason:+: $reason}"
    return 1
}

# Whether a program that is written there runs.
try_folder() {
    probe=$folder/.probe-$unique
    # Through cat, which says why it cannot write; not every shell's printf does.
    if ! reason=$(printf '#!/bin/sh\nexit 42\n' | (set -C && cat >"$probe") 2>&1 && chmod 700 "$probe" 2>&1); then
        rm -f "$probe" 2>/dev/null
        shorten
        return 1
    fi
    "$probe" </dev/null >/dev/null 2>&1
    code=$?
    rm -f "$probe"
    probe=''
    [ $code -eq 42 ] && return 0
    reason="no program can be run from it (noexec)"
    return 1
}

use_folder() {
    name_folder "$index" || fail "folder there is no such folder"
    make_folder || fail "folder $reason"
}

# ---- files

# Sets hash.
hash_of() {
    if command -v sha256sum >/dev/null 2>&1; then
        hash=$(sha256sum <"$1")
        hash=${hash%% *}
    elif command -v shasum >/dev/null 2>&1; then
        hash=$(shasum -a 256 <"$1")
        hash=${hash%% *}
    elif command -v openssl >/dev/null 2>&1; then
        hash=$(openssl dgst -sha256 <"$1")
        hash=${hash##* }
    else
        fail "tools there is neither sha256sum nor shasum nor openssl"
    fi
}

# Whether it is an agent that this machine can run.
runs() {
    reason=$("$1" --version 2>&1 </dev/null) && return 0
    code=$?
    reason=${reason%%"$newline"*}
    reason="exit status $code${reason:+: $reason}"
    return 1
}

# Ends the script if the agent of the hash $1 is in the folder, and good.
find_agent() {
    file=$folder/agent-$1
    [ -e "$file" ] || [ -h "$file" ] || return 1
    look_at "$file"
    if [ -h "$file" ] || [ ! -f "$file" ] || [ "$owner" != "$uid" ]; then
        say "damaged $file: it is not a file of ours ($mode, uid $owner)"
        return 1
    fi
    case $mode in
    -????-??-*) ;;
    *)
        say "damaged $file: others could write to it ($mode)"
        return 1
        ;;
    esac
    hash_of "$file"
    if [ "$hash" != "$1" ]; then
        say "damaged $file: its SHA-256 is $hash"
        return 1
    elif ! runs "$file"; then
        say "unusable the binary does not run there ($reason)"
        return 1
    fi
    say "agent $1 $file"
    exit 0
}

find_built() {
    built=
    [ -f "$folder/built-$source-$here" ] || return 1
    IFS= read -r built <"$folder/built-$source-$here"
    case $built in *[!0-9a-f]* | '') return 1 ;; esac
    [ ${#built} -eq 64 ] && find_agent "$built"
}

# Removes what deliveries that were cut off left a day ago.
# shellcheck disable=SC2044 # our names have no blanks
tidy() (
    cd "$folder" || exit
    for old in $(find . ! -name . -prune \( -name '.new-*' -o -name '.probe-*' -o -name '.build-*' -o -name '.image-*' \) \
        -mtime +1 2>/dev/null); do
        rm -rf "$old"
    done
) 2>/dev/null

# The new copy is good and has the hash $1: it gets its name in one step, so that whoever delivers at the same time
# finds either none or a whole one.
accept() {
    if ! reason=$(chmod 700 "$new" 2>&1); then
        shorten
        fail "folder $reason"
    fi
    runs "$new" || fail "run $reason"
    # The name must not be on the disk before the bytes are: a node that loses its power would start half an agent.
    # Not every sync takes a file; one that takes none, or cannot, is asked for everything.
    sync "$new" 2>/dev/null || sync 2>/dev/null
    file=$folder/agent-$1
    [ ! -d "$file" ] || rm -rf "$file"
    if ! reason=$(mv -f "$new" "$file" 2>&1); then
        shorten
        fail "folder $reason"
    fi
    if [ "$source" != - ]; then
        # Only a help to find it again: without, it is built again.
        { printf '%s\n' "$1" >"$new" && mv -f "$new" "$folder/built-$source-$here"; } 2>/dev/null || rm -f "$new"
    fi
    new=''
    tidy
    say "agent $1 $file"
}

# ---- building

# Compiles to `agent`. The log is kept here and not in a file: the disk may be full.
try_compiler() {
    for source_file in engine/*/*/*.c; do
        [ ! -e "$source_file" ] || set -- "$@" "$source_file" # where nothing matches it is the pattern
    done
    log=$("$@" -o agent engine/*/*.c -lm 2>&1) && return 0
    case $log in *"No space left"*) fail "folder No space left on device" ;; esac
    return 1
}

# Sets reason to the line of the log that says most.
explain_log() {
    reason=${log%%"$newline"*}
    while [ -n "$log" ]; do
        line=${log%%"$newline"*}
        log=${log#"$line"}
        log=${log#"$newline"}
        case $line in
        *error* | *Error*)
            reason=$line
            return
            ;;
        esac
    done
}

compile() {
    version=$(cat .complete)
    for compiler in cc gcc clang; do
        command -v "$compiler" >/dev/null 2>&1 || continue
        set -- "$compiler" -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 "-DASSAY_VERSION=\"$version\"" -I.
        try_compiler "$@" -static && return 0
        try_compiler "$@" && return 0 # there is no static libc
        explain_log
        reason="$compiler: $reason"
        return 1
    done
    reason="there is neither cc nor gcc nor clang"
    return 1
}

build() {
    work=$folder/.build-$unique
    if ! reason=$(mkdir -m 700 "$work" 2>&1); then
        shorten
        fail "folder $reason"
    fi
    cd "$work" || fail "folder cannot enter $work"
    TMPDIR=$work # of the compiler, and of here-documents: /tmp may be full
    export TMPDIR
    if ! reason=$(sh 2>&1); then
        shorten
        fail "folder $reason"
    fi
    [ -f .complete ] || fail "folder the sources did not come as a whole"
    compile || fail "compiler $reason"
    if ! reason=$(mv agent "$new" 2>&1); then
        shorten
        fail "folder $reason"
    fi
    cd / || exit
    rm -rf "$work"
    work=''
}

# ---- verbs

find_all() {
    if [ "$binary" != - ] && [ "$(uname -s) $here" != "Linux $machine" ]; then
        say "unusable the node is a $(uname -s) $here and the binary is for Linux $machine"
        binary=-
    fi
    while [ "$index" -le 6 ]; do
        if ! name_folder "$index"; then
            :
        elif make_folder && try_folder; then
            say "folder $index $folder"
            [ "$binary" = - ] || find_agent "$binary"
            [ "$source" = - ] || find_built
            return
        else
            say "unfit $folder: $reason"
        fi
        index=$((index + 1))
    done
}

new='' work='' probe=''
printf '\n' # a login script may have left a line open
case $verb in
find)
    find_all
    ;;
put)
    use_folder
    new=$folder/.new-$unique
    source=-
    if ! reason=$( (set -C && cat >"$new") 2>&1); then
        shorten
        fail "folder $reason"
    fi
    hash_of "$new"
    if [ "$hash" = "$binary" ]; then
        accept "$hash"
    else
        fail "folder a copy does not read back as it was written"
    fi
    ;;
build)
    use_folder
    new=$folder/.new-$unique
    build
    hash_of "$new"
    accept "$hash"
    ;;
esac
exit 0
