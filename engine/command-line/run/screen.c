#include "engine/command-line/run/screen.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_MAX = 1000, HEIGHT_MAX = 500, FRAME_MAX = 1 << 22 };
#define OPEN "\033[?1049h\033[?25l\033[2J"
#define CLOSE "\033[?25h\033[?1049l"

static const char *const colours[] = {[SCREEN_PLAIN] = "",
                                      [SCREEN_TITLE] = "\033[1m",
                                      [SCREEN_DIM] = "\033[2m",
                                      [SCREEN_WARNING] = "\033[33m",
                                      [SCREEN_FAILURE] = "\033[31m"};

bool screen_is_possible(int descriptor) {
    const char *terminal = getenv("TERM");
    return isatty(descriptor) && terminal && terminal[0] && strcmp(terminal, "dumb") != 0;
}

/* Nothing of LINES is known any more. */
static void forget(struct screen_line *lines, size_t count) {
    for (size_t i = 0; lines && i < count; i++)
        free(lines[i].text);
    free(lines);
}

static void send(const struct screen *screen, const char *bytes) {
    (void)file_write_all(screen->descriptor, bytes, strlen(bytes));
}

void screen_open(struct screen *screen, int descriptor) {
    const char *no_colour = getenv("NO_COLOR");
    *screen = (struct screen){.descriptor = descriptor,
                              .is_open = true,
                              .has_colours = !no_colour || !no_colour[0],
                              .has_unicode = shown_is_unicode()};
    send(screen, OPEN);
    screen_measure(screen);
}

/* Reads the size of the window. If it has changed, the next drawing begins anew. */
void screen_measure(struct screen *screen) {
    struct winsize window = {.ws_row = 24, .ws_col = 80};
    if (ioctl(screen->descriptor, TIOCGWINSZ, &window) < 0 || window.ws_row == 0 || window.ws_col == 0)
        window = (struct winsize){.ws_row = 24, .ws_col = 80};
    size_t width = window.ws_col < WIDTH_MAX ? window.ws_col : WIDTH_MAX;
    size_t height = window.ws_row < HEIGHT_MAX ? window.ws_row : HEIGHT_MAX;
    if (width == screen->width && height == screen->height)
        return;
    forget(screen->drawn, screen->height);
    forget(screen->lines, screen->count);
    screen->drawn = NULL;
    screen->count = 0;
    screen->width = width;
    screen->height = height;
    screen->lines = xcalloc(height, sizeof *screen->lines);
}

/* Cuts TEXT at WIDTH characters; without UNICODE other characters than ASCII become '?'. */
static void cut_line(char *text, size_t width, bool unicode) {
    size_t columns = 0;
    char *to = text;
    for (const char *at = text; *at; at++) {
        bool continues = ((unsigned char)*at & 0xc0) == 0x80;
        columns += !continues;
        if (columns > width)
            break;
        if (unicode || (unsigned char)*at < 0x80)
            *to++ = *at;
        else if (!continues)
            *to++ = '?';
    }
    *to = '\0';
}

void screen_line(struct screen *screen, enum screen_style style, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    if (screen->count == screen->height)
        return;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    char *line = shown_copy(length < 0 ? "" : text);
    if (length >= 0)
        free(text);
    cut_line(line, screen->width, screen->has_unicode);
    screen->lines[screen->count++] = (struct screen_line){style, line};
}

/* Appends what turns line ROW of the terminal from OLD (NULL: empty) into NEW; nothing if they are equal. */
static void append_change(const struct screen *screen, size_t row, const struct screen_line *old,
                          const struct screen_line *new, struct text *frame) {
    size_t same = 0, column = 1;
    bool is_same_style = !old || old->style == new->style;
    const char *before = old && is_same_style ? old->text : "";
    if (is_same_style && strcmp(old ? old->text : "", new->text) == 0)
        return;
    while (before[same] && before[same] == new->text[same])
        same++;
    while (same > 0 && ((unsigned char)new->text[same] & 0xc0) == 0x80)
        same--;
    for (size_t i = 0; i < same; i++)
        column += ((unsigned char)new->text[i] & 0xc0) != 0x80;
    const char *colour = screen->has_colours ? colours[new->style] : "";
    (void)text_printf(frame, "\033[%zu;%zuH%s%s%s%s", row + 1, column, old ? "\033[K" : "", colour,
                      new->text + same, colour[0] ? "\033[0m" : "");
}

/* Draws the lines that have changed since the last drawing. Negative: the terminal cannot be written to. */
int screen_draw(struct screen *screen) {
    cleanup(text_clear) struct text frame;
    text_init(&frame, FRAME_MAX);
    while (screen->count < screen->height)
        screen->lines[screen->count++] = (struct screen_line){SCREEN_PLAIN, xstrdup("")};
    if (!screen->drawn)
        (void)text_append(&frame, "\033[2J", 4);
    for (size_t i = 0; i < screen->height; i++)
        append_change(screen, i, screen->drawn ? &screen->drawn[i] : NULL, &screen->lines[i], &frame);
    forget(screen->drawn, screen->height);
    screen->drawn = screen->lines;
    screen->lines = xcalloc(screen->height, sizeof *screen->lines);
    screen->count = 0;
    return frame.length > 0 ? file_write_all(screen->descriptor, frame.bytes, frame.length) : 0;
}

void screen_close(struct screen *screen) {
    if (!screen->is_open)
        return;
    send(screen, CLOSE);
    forget(screen->drawn, screen->height);
    forget(screen->lines, screen->count);
    *screen = (struct screen){0};
}
