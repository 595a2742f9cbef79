/* The texts of schemas/, as they stand there (made by engine/report/page/embed.awk). */
#ifndef ASSAY_ARCHIVE_FORMAT_SCHEMAS_H
#define ASSAY_ARCHIVE_FORMAT_SCHEMAS_H

extern const char text_run_schema_json[], text_datapackage_schema_json[], text_inputs_schema_json[],
    text_sources_schema_json[], text_versions_schema_json[], text_facts_schema_json[],
    text_clock_schema_json[], text_controls_schema_json[], text_warm_up_schema_json[];

#endif
