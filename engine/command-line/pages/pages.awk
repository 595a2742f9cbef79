# The pages of the commands, one a file, NAME.txt, as the C of their tables (verb.h), in the order in which they are
# given, which is that of `assay help`. A page is what --help and man(1) print, and what the parser goes by:
#
#     A summary, in one line.
#     Usage: assay NAME ...
#     Operands: LEAST to MOST|any[, the first a plugin]
#
#     The description: paragraphs, which are wrapped when they are printed; a line that begins with a blank is an
#     example and stays as it is.
#
#     Options:
#     -l, --long ARGUMENT
#         What it does. "ARGUMENT..." may be given several times, "--long[=ARGUMENT]" is a switch that may have one.
#
# assay.txt is the program's own page, with the lists "Environment:" and "Exit codes:" that all pages share.
function quoted(text) {
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    return "\"" text "\""
}

function end_option() {
    if (option != "")
        items[part] = items[part] "    {" option ", " quoted(help) "},\n"
    option = help = ""
}

function print_list(declaration, list) {
    printf "%s[] = {\n%s    {0},\n};\n", declaration, items[list]
    items[list] = ""
}

function end_page() {
    if (name == "")
        return
    end_option()
    print_list("static const struct verb_option options_" name, "Options:")
    if (name == "assay") {
        print_list("const struct verb_option verb_environment", "Environment:")
        print_list("const struct verb_option verb_exit_codes", "Exit codes:")
    }
    printf "const struct verb verb_%s = {\n    .name = %s,\n    .summary = %s,\n    .synopsis = %s,\n", name, quoted(name), quoted(summary), quoted(usage)
    printf "    .description =\n%s,\n    .options = options_%s,\n", description, name
    printf "    .operands_least = %s,\n    .operands_most = %s,\n    .has_plugins = %s,\n    .run = %s,\n};\n\n", least, most, plugins, name == "assay" ? "NULL" : "command_" name
    table = table (name == "assay" ? "" : "    &verb_" name ",\n")
    description = ""
}

FNR == 1 {
    end_page()
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.txt$/, "", name)
    summary = $0
    part = "usage"
    usage = ""
    next
}

part == "usage" && /^Operands: / {
    sub(/,$/, "", $4)
    least = $2
    most = $4 == "any" ? "SIZE_MAX" : $4
    plugins = /plugin/ ? "true" : "false"
    part = "description"
    getline # the blank line behind it
    next
}

part == "usage" {
    sub(/^Usage: /, "")
    usage = usage (usage == "" ? "" : " ") $0
    next
}

/^(Options|Environment|Exit codes):$/ {
    end_option()
    part = $0
    gap = ""
    next
}

part == "description" {
    if ($0 == "") {
        gap = "\\n"
        next
    }
    line = quoted($0)
    sub(/"$/, "\\n\"", line)
    sub(/^"/, "\"" gap, line)
    description = description (description == "" ? "" : "\n") "        " line
    gap = ""
    next
}

/^[^ ]/ {
    end_option()
    letter = 0
    if ($0 ~ /^-[A-Za-z], /) {
        letter = "'" substr($0, 2, 1) "'"
        $0 = substr($0, 5)
    }
    match($0, /^[A-Za-z0-9_-]+/)
    word = substr($0, 1, RLENGTH)
    argument = substr($0, RLENGTH + 1)
    sub(/^ /, "", argument)
    option = quoted(word) ", " letter ", " (argument == "" ? "NULL" : quoted(argument))
    next
}

{
    sub(/^ +/, "")
    help = help (help == "" ? "" : " ") $0
}

BEGIN {
    print "/* Made by pages.awk. */\n#include \"engine/command-line/verb.h\"\n"
}

END {
    end_page()
    printf "const struct verb *const verb_table[] = {\n%s    NULL,\n};\n", table
}
