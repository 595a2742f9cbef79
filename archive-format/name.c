#include "archive-format/name.h"

#include "archive-format/reader.h"
#include "archive-format/writer.h"

#include <string.h>

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

const char *archive_name_danger(const char *name) {
    if (name[0] == '\0')
        return "is empty";
    if (name[0] == '/')
        return "is an absolute path";
    if (is_letter(name[0]) && name[1] == ':')
        return "begins with a drive letter";
    for (const char *at = name; *at; at++) {
        if (*at == '\\')
            return "has a backslash";
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return "has a control character";
    }
    for (const char *part = name;;) {
        size_t length = strcspn(part, "/");
        if (length == 2 && memcmp(part, "..", 2) == 0)
            return "climbs out of its folder by '..'";
        if (length == 0 || (length == 1 && part[0] == '.'))
            return "has an empty or '.' part";
        if (part[length] == '\0')
            return NULL;
        part += length + 1;
    }
}

const char *archive_name_problem(const char *name) {
    const char *danger = archive_name_danger(name);
    if (danger)
        return danger;
    for (const char *at = name; *at; at++)
        if (!is_letter(*at) && !(*at >= '0' && *at <= '9') && !strchr("._-/", *at))
            return "has a byte other than letters, digits, '.', '_', '-' and '/'";
    return strlen(name) > ARCHIVE_NAME_MAX ? "is longer than 512 bytes" : NULL;
}
_Static_assert(ARCHIVE_NAME_MAX == 512, "the sentence above says 512");

/* The place of a byte in the order of names; case does not count. */
static int rank(char c) {
    if (c == '\0')
        return 0;
    if (c == '/')
        return 1;
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 'a' + 2;
    return (unsigned char)c + 2;
}

int archive_name_compare(const char *a, const char *b) {
    while (*a && rank(*a) == rank(*b)) {
        a++;
        b++;
    }
    return rank(*a) - rank(*b);
}

const char *archive_name_conflict(const char *a, bool a_is_folder, const char *b) {
    size_t same = 0, folder = 0; /* bytes in common but for case; those of them that are whole folders */
    while (a[same] && rank(a[same]) == rank(b[same])) {
        if (a[same] == '/')
            folder = same;
        same++;
    }
    bool a_ends = a[same] == '\0', b_ends = b[same] == '\0';
    if (a_ends && (b_ends || b[same] == '/'))
        folder = same;
    if (a_ends && b_ends && memcmp(a, b, same) == 0)
        return "is there twice";
    if (memcmp(a, b, folder) != 0)
        return "differs only in upper and lower case from another";
    return a_ends && b[same] == '/' && !a_is_folder ? "is a file and a folder at once" : NULL;
}

const char *archive_name_show(const char *name, char buffer[static ARCHIVE_NAME_SHOWN_SIZE]) {
    size_t length = 0;
    for (; name[length] && length < ARCHIVE_NAME_SHOWN_SIZE - 4; length++)
        buffer[length] = name[length] >= 0x20 && name[length] < 0x7f ? name[length] : '?';
    memcpy(buffer + length, name[length] ? "..." : "", name[length] ? 4 : 1);
    return buffer;
}
