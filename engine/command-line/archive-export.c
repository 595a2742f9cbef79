/* assay archive export: archives as bags, as data packages, as folders. */
#include "engine/command-line/archive-export.h"

#include "archive-format/export.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"

#include <stdio.h>
#include <string.h>

char *archive_output_folder(const struct verb_arguments *arguments, const char *path, const char *ending) {
    const char *given = verb_value(arguments, "--output"), *name = file_base_name(path);
    size_t length = strlen(name) - (text_ends_in(name, ".zip") ? strlen(".zip") : 0);
    return given ? xstrdup(given) : xformat("%.*s%s", (int)length, name, ending);
}

int archive_export_command(const struct verb_arguments *arguments, struct failure *failure) {
    static const struct {
        const char *name, *ending;
    } forms[] = {
        [EXPORT_BAGIT] = {"bagit", ".bag"},
        [EXPORT_FRICTIONLESS] = {"frictionless", ".datapackage"},
        [EXPORT_FOLDER] = {"folder", ""},
    };
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    const char *path = arguments->operands[2];
    size_t form = 0, count = sizeof forms / sizeof *forms;
    while (form < count && strcmp(forms[form].name, arguments->operands[1]) != 0)
        form++;
    if (form == count)
        return failure_input(
            failure, NULL, 0, 0,
            "an archive cannot be exported as '%.64s'; expected bagit, frictionless or folder",
            arguments->operands[1]);
    cleanup_free char *folder = archive_output_folder(arguments, path, forms[form].ending);
    int r = archive_open(path, &archive, failure);
    r = r < 0 ? r : archive_export(archive, (enum export_form)form, folder, failure);
    if (r == 0)
        printf("%s\n", shown(folder).text);
    return r;
}
