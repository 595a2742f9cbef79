#include "archive-format/crate/preview.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char head[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                           "style-src 'unsafe-inline'\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width\">\n<title>";
static const char style[] =
    "</title>\n<style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "pre{overflow-x:auto;background:#f4f4f4;padding:.5em}th,td{text-align:left;padding:.1em 1em .1em 0}"
    "td.n{text-align:right}</style>\n</head>\n<body>\n<h1>";

/* BYTES, as they are shown to people, with what HTML would take for its own replaced. */
static void append_escaped(struct text *html, const char *bytes, size_t length) {
    static const char special[] = "<>&\"'";
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    cleanup(text_clear) struct text shown;
    text_init(&shown, html->limit);
    if (text_append_shown(&shown, bytes, length, true) < 0)
        html->error = -EFBIG;
    for (size_t i = 0; i < shown.length; i++) {
        const char *found = strchr(special, shown.bytes[i]);
        if (found)
            text_append_string(html, entities[found - special]);
        else
            text_append_character(html, shown.bytes[i]);
    }
}

/* BEFORE and AFTER are HTML; WORDS are not, and NULL leaves out all three. */
static void append(struct text *html, const char *before, const char *words, const char *after) {
    if (!words)
        return;
    text_append_string(html, before);
    append_escaped(html, words, strlen(words));
    text_append_string(html, after);
}

static int append_outcome(const struct sealed_content *content, struct text *html) {
    cleanup(text_clear) struct text lines;
    text_init(&lines, html->limit);
    int r = describe_result(content, &lines);
    if (lines.length > 0)
        append(html, "<h2>Result</h2>\n<pre>", lines.bytes, "</pre>\n");
    text_reset(&lines);
    r = r < 0 ? r : describe_outcome(content, &lines);
    text_append_string(html, "<ul>\n");
    for (char *line = lines.bytes, *end; lines.length > 0 && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        append(html, "<li>", line, "</li>\n");
    }
    text_append_string(html, "</ul>\n");
    return r;
}

static void append_facts(const struct archive_description *description, struct text *html) {
    char started[CLOCK_TEXT_SIZE], ended[CLOCK_TEXT_SIZE];
    const struct {
        const char *name, *value;
    } facts[] = {
        {"What", description->text},
        {"Kind", archive_kind_name(description->kind)},
        {"Started", clock_format(description->started_ns, started)},
        {"Ended", clock_format(description->ended_ns, ended)},
        {"Run", description->run_id},
        {"Command", description->command},
        {"By", description->agent},
        {"Measured by", description->measured_by},
        {"Sealed by assay", description->engine_version},
        {"Licence", description->license ? description->license : ARCHIVE_NO_LICENSE},
    };
    text_append_string(html, "<h2>Facts</h2>\n<table>\n");
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        append(html, "<tr><th>", facts[i].value ? facts[i].name : NULL, "</th>");
        append(html, "<td>", facts[i].value, "</td></tr>\n");
    }
    text_append_string(html, "</table>\n");
}

/* Names of members have no character that HTML or a URL would take for its own. */
static void append_files(const struct staging *staging, struct text *html) {
    size_t files = 0;
    text_append_string(html, "<h2>Files</h2>\n<table>\n<tr><th>file</th><th>bytes</th><th>what</th></tr>\n");
    for (size_t i = 0; i < staging->count; i++) {
        const struct staged_file *file = &staging->files[i];
        const struct archive_place *place = archive_place_find(file->name);
        if (file->folder || describe_is_made_last(file->name) || files++ >= PREVIEW_FILES_MAX)
            continue;
        text_printf(html,
                    "<tr><td><a href=\"%s\">%s</a></td><td class=\"n\">%" PRIu64 "</td><td>%s</td></tr>\n",
                    file->name, file->name, file->size, place ? place->description : "");
    }
    text_append_string(html, "</table>\n");
    if (files > PREVIEW_FILES_MAX)
        text_printf(html, "<p>and %zu more, which " ARCHIVE_MANIFEST " lists</p>\n",
                    files - PREVIEW_FILES_MAX);
}

int preview_print(const struct sealed_content *content, struct text *ret) {
    const char *name = content->description->name;
    struct text_mark mark = text_mark(ret);
    append(ret, head, name, style);
    append(ret, "", name, "</h1>\n");
    int r = append_outcome(content, ret);
    append_facts(content->description, ret);
    append_files(content->staging, ret);
    text_append_string(ret, "</body>\n</html>\n");
    return r < 0 ? r : text_keep(ret, mark);
}
