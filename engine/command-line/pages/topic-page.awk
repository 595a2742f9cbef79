# Makes a page for man(7) of a reference in Markdown: awk -v name=assay-campaign -f topic-page.awk README.md
function plain(text) { # code and emphasis as bold, links as their text
    gsub(/\\\|/, "|", text); gsub(/\\/, "\\e", text)
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
        link = substr(text, RSTART + 1, RLENGTH - 2); sub(/\].*/, "", link)
        text = substr(text, 1, RSTART - 1) link substr(text, RSTART + RLENGTH)
    }
    while (match(text, /`[^`]*`/)) text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fP" substr(text, RSTART + RLENGTH)
    while (match(text, /\*\*[^*]*\*\*/)) text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 2, RLENGTH - 4) "\\fP" substr(text, RSTART + RLENGTH)
    gsub(/-/, "\\-", text)
    return text ~ /^[.\047]/ ? "\\&" text : text
}
function verbatim(on) {
    if (on == code) return
    print on ? ".PP\n.nf\n.RS 4" : ".RE\n.fi\n.PP"
    code = on
}
/^!\[/ { next } # a picture
/^# / { print ".TH " toupper(name) " 7 \"\" assay\n.SH NAME\n" name " \\- " tolower(substr($0, 3)) "\n.SH DESCRIPTION"; next }
/^## / { verbatim(0); print ".SH " plain(toupper(substr($0, 4))); next }
/^### / { verbatim(0); print ".SS " plain(substr($0, 5)); next }
/^    / { verbatim(1); gsub(/\\/, "\\e"); gsub(/-/, "\\-"); print "\\&" substr($0, 5); next }
code && /^$/ { held = held "\n"; getline; if (/^    /) { print ""; gsub(/\\/, "\\e"); gsub(/-/, "\\-"); print "\\&" substr($0, 5); next } }
/^\|[-|]*\|$/ { rows = 1; next }
/^\|/ { # the first column is the tag; a head is skipped
    if (!rows) next
    verbatim(0)
    gsub(/\\\|/, "\001")
    count = split($0, cell, /\|/)
    gsub(/\001/, "|", cell[2]); gsub(/^ | $/, "", cell[2]); print ".TP\n" plain(cell[2])
    for (i = 3; i < count; i++) { gsub(/\001/, "|", cell[i]); sub(/^ /, "", cell[i]); print plain(cell[i]) }
    next
}
/^$/ { verbatim(0); rows = 0; print ".PP"; next }
{ verbatim(0); print plain($0) }
END { verbatim(0) }
