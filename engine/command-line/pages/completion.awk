# Completion for a shell, of the pages (pages.awk) in the order in which they are given: the words of each command, as a
# function for bash and zsh, and behind that the file `tail`, which has the shell's own part.
#
#     awk -v shell=bash -v tail=completion.bash -f completion.awk assay.txt run.txt ...
#
# The words of a command: its actions, which are the lower-case words of its usage, and its options, with "=" behind
# those that need an argument. `operand` is what comes where there is no action: "action", one is needed; "run", the
# folder of a run; "command", of assay; or "file".
function end_page(    i, count, words, list) {
    if (name != "") {
        gsub(/\[--[^]]*\]/, " ", usage)
        operand = usage ~ /[^A-Z]COMMAND/ ? "command" : usage ~ /[[ ]RUN/ ? "run" : "file"
        if (usage ~ ("^assay " name " [a-z]"))
            operand = "action"
        count = split(usage, words, /[][ |]+/)
        for (i = 1; i <= count; i++)
            if (words[i] ~ /^[a-z][a-z-]*$/ && words[i] != "assay" && words[i] != name && index(" " list " ", " " words[i] " ") == 0)
                list = list (list == "" ? "" : " ") words[i]
        printf "    %s) operand=%s actions='%s'\n        options='%s--help' ;;\n", name == "assay" ? "''" : name, operand, list, options
    }
    if (name != "" && name != "assay")
        commands = commands (commands == "" ? "" : " ") name
    usage = options = ""
}

BEGIN {
    if (shell == "zsh")
        print "#compdef assay"
    print "# Made by completion.awk from the pages of assay's commands.\n_assay_words() {\n    case $1 in"
}

FNR == 1 {
    end_page()
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.txt$/, "", name)
    part = "usage"
    next
}

part == "usage" && /^Operands: / { part = "" }
part == "usage" {
    sub(/^Usage: /, "")
    usage = usage (usage == "" ? "" : " ") $0
}

/^[A-Z][A-Za-z ]*:$/ { part = $0 }
part == "Options:" && /^-/ {
    match($0, /--[a-z0-9-]+/)
    value = substr($0, RSTART + RLENGTH, 1) == " " ? "=" : ""
    if ($0 ~ /^-[A-Za-z], /)
        options = options substr($0, 1, 2) value " "
    options = options substr($0, RSTART, RLENGTH) value " "
}

END {
    end_page()
    printf "    esac\n    commands='%s'\n}\n\n", commands
    while ((getline line < tail) > 0)
        print line
}
