# Text files as C: of each FILE `const char PREFIX_NAME[]`, NAME being its name in small letters with '_' for all but letters
# and digits: page_uplot_min_css. HEADER, which declares them, is included.
function quoted(text) {
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    gsub(/\?/, "\\?", text) # no trigraphs
    return "    \"" text "\\n\""
}
FNR == 1 {
    name = FILENAME
    sub(/^.*\//, "", name)
    gsub(/[^A-Za-z0-9]/, "_", name)
    print (NR > 1 ? "    ;\n" : "#include \"" header "\"\n\n") "const char " prefix "_" tolower(name) "[] ="
}
{ print quoted($0) }
END { print "    ;" }
