# The page for man(1) of a command: awk -v version=V -f man-page.awk NAME.txt assay.txt, and of the program:
# ... assay.txt and the pages of all commands. pages.awk says what a page is.
function escaped(text) { # a hyphen can be copied, a backslash is none of roff's, a point at the start no request
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text ~ /^[.\047]/ ? "\\&" text : text
}

function example(on) {
    if (on != is_example)
        print on ? ".PP\n.EX" : ".EE"
    is_example = on
}

function item(term, argument, meaning) {
    return ".TP\n" term (argument == "" ? "" : (argument ~ /^\[/ ? "" : " ") "\\fI" escaped(argument) "\\fR") "\n" meaning
}

FNR == 1 {
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.txt$/, "", name)
    part = "usage"
    if (NR > 1) {
        if (name != "assay") {
            commands = commands item("\\fB" name "\\fR", "", escaped($0) "\n")
            others = others (others == "" ? "" : ",\n") ".BR assay\\-" name " (1)"
        }
        next
    }
    own = name
    print ".TH ASSAY" (own == "assay" ? "" : "\\-" toupper(own)) " 1 \"\" \"assay " version "\" \"User Commands\""
    print ".SH NAME\nassay" (own == "assay" ? "" : "\\-" own) " \\- " escaped($0) "\n.SH SYNOPSIS"
    next
}

/^(Options|Environment|Exit codes):$/ {
    part = $0
    next
}

part ~ /:$/ && (name == own || part == "Exit codes:") {
    if (/^ /) {
        sub(/^ +/, "")
        list[part] = list[part] escaped($0) "\n"
    } else if ($0 != "") {
        letter = ""
        if (/^-[A-Za-z], /) {
            letter = "\\fB\\-" substr($0, 2, 1) "\\fR, "
            has_h = has_h || /^-h/
            $0 = substr($0, 5)
        }
        match($0, /^[A-Za-z0-9_-]+/)
        argument = substr($0, RLENGTH + 1)
        sub(/^ /, "", argument)
        list[part] = list[part] item(letter "\\fB" escaped(substr($0, 1, RLENGTH)) "\\fR", argument, "")
    }
    next
}

name != own {
    next
}

/^Operands: / {
    print ".SH DESCRIPTION"
    part = "description"
    getline # the blank line behind it
    next
}

part == "usage" {
    sub(/^Usage: /, "")
    print escaped($0)
    next
}

$0 == "" {
    is_gap = 1
    next
}

{
    if (!/^ /)
        example(0)
    if (is_gap && !/^ /)
        print ".PP"
    else if (is_gap && is_example)
        print ""
    example(/^ /)
    is_gap = 0
    print escaped($0)
}

END {
    example(0)
    if (own == "assay")
        printf ".SH COMMANDS\n%s", commands
    printf ".SH OPTIONS\n%s%s", list["Options:"], item((has_h ? "" : "\\fB\\-h\\fR, ") "\\fB\\-\\-help\\fR", "", "Print this help.\n")
    if (own == "assay")
        printf ".SH ENVIRONMENT\n%s", list["Environment:"]
    printf ".SH EXIT STATUS\n%s.SH SEE ALSO\n%s\n", list["Exit codes:"], own == "assay" ? others : ".BR assay (1)"
}
