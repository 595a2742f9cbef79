/*
 * A terminal as a page of lines, drawn again and again without flicker: of each frame only what differs from
 * the frame before is sent, in one write, so that slow links keep up. While it is open the terminal shows its
 * other buffer, without a cursor.
 *
 *     screen_open(&screen, STDERR_FILENO);
 *     screen_line(&screen, SCREEN_TITLE, "%s", name) ... ; screen_draw(&screen);
 *     screen_close(&screen);
 *
 * A window of another size is drawn whole. Colours are not used where NO_COLOR is set, nor characters beyond
 * ASCII where the locale has none.
 */
#ifndef ASSAY_COMMAND_LINE_RUN_SCREEN_H
#define ASSAY_COMMAND_LINE_RUN_SCREEN_H

#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

enum screen_style { SCREEN_PLAIN, SCREEN_TITLE, SCREEN_DIM, SCREEN_WARNING, SCREEN_FAILURE };

struct screen_line {
    enum screen_style style;
    char *text; /* UTF-8, as wide as the window at most */
};

struct screen {
    int descriptor;
    bool is_open, has_colours, has_unicode;
    size_t width, height;      /* of the window, in characters */
    struct screen_line *lines; /* of the frame that is made */
    size_t count;
    struct screen_line *drawn; /* that are on the terminal; height of them, or NULL: none is */
};

/* Whether DESCRIPTOR is a terminal that can be drawn on: TERM is set, and not "dumb". */
bool screen_is_possible(int descriptor);
void screen_open(struct screen *screen, int descriptor);
/* Finds the size of the window as it is now, before a frame is made. */
void screen_measure(struct screen *screen);
/* The next line of the frame, cut at the width; lines below the window are left out. */
void screen_line(struct screen *screen, enum screen_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sends what differs; a negative errno when the terminal is gone. */
int screen_draw(struct screen *screen);
/* The terminal is as it was before. */
void screen_close(struct screen *screen);

#endif
