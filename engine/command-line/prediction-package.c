#include "engine/command-line/prediction-package.h"

#include "archive-format/datapackage.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"

#include <stdlib.h>

/* In the order of prediction_append_csv_header. */
static size_t describe(const struct predict_operations *operations, struct archive_column *columns) {
    size_t count = 0;
    columns[count++] = (struct archive_column){.name = "name",
                                               .type = ARCHIVE_STRING,
                                               .unit = "",
                                               .role = ARCHIVE_ROLE_ID,
                                               .title = "of the scenario"};
    for (size_t i = 0; i < operations->parameter_count; i++) {
        const struct plugin_parameter *parameter = &operations->parameters[i];
        columns[count++] = (struct archive_column){
            .name = parameter->name,
            .type = parameter->words   ? ARCHIVE_STRING
                    : parameter->whole ? ARCHIVE_INTEGER
                                       : ARCHIVE_NUMBER,
            .unit = parameter->unit ? parameter->unit : "",
            .role = ARCHIVE_ROLE_FACTOR,
            .title = parameter->help,
        };
    }
    for (size_t i = 0; i < operations->column_count; i++)
        columns[count++] = (struct archive_column){
            .name = operations->columns[i].name,
            .type = ARCHIVE_NUMBER,
            .unit = operations->columns[i].unit,
            .role = ARCHIVE_ROLE_RESPONSE,
            .title = operations->columns[i].help,
        };
    columns[count++] = (struct archive_column){.name = "remarks",
                                               .type = ARCHIVE_STRING,
                                               .unit = "",
                                               .title = "notes and warnings, parted by semicolons"};
    return count;
}

int prediction_package_write(const struct prediction *prediction, const char *table,
                             struct failure *failure) {
    const struct predict_operations *operations = prediction_operations(prediction);
    cleanup_free struct archive_column *columns =
        calloc(operations->parameter_count + operations->column_count + 2, sizeof *columns);
    cleanup_free char *path = text_format("%s.datapackage.json", table);
    if (!columns || !path)
        return failure_memory(failure);
    const struct archive_table described = {
        .path = file_base_name(table),
        .columns = columns,
        .column_count = describe(operations, columns),
    };
    return archive_write_datapackage(path, "prediction", &described, 1, failure);
}
