/* assay archive publish: what Zenodo asks for beside an archive, and what is left to do by hand. Nothing is
 * uploaded. Source: https://developers.zenodo.org, "Deposit metadata". */
#include "engine/command-line/archive-export.h"

#include "archive-format/export.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/chart.h"
#include "engine/report/shown.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZENODO_BYTES_MAX 50e9 /* of a record */
#define ORCID_PREFIX "https://orcid.org/"

enum { PAGE_BYTES_MAX = 1 << 20, ORCID_LENGTH = 19, ADDRESS_LENGTH = sizeof ORCID_PREFIX - 1 + ORCID_LENGTH };

struct publication {
    const struct verb_arguments *arguments;
    struct archive_reader *archive;
    char *path;                /* of it, absolute */
    struct document *campaign; /* campaign.resolved.json; NULL: there is none */
    char sha256[HASH_HEX_SIZE];
    cJSON *metadata;
    const char *license, *license_text; /* as Zenodo calls it; as the user or the campaign has it */
};

static void publication_clear(struct publication *publication) {
    cJSON_Delete(publication->metadata);
    document_free(publication->campaign);
    archive_close(publication->archive);
    free(publication->path);
}

/* What the campaign says of KEY; NULL: nothing. */
static const char *campaign_text(const struct publication *publication, const char *key) {
    const struct document_node *node =
        publication->campaign ? document_get(publication->campaign->root, key) : NULL;
    return node && node->kind == DOCUMENT_TEXT && node->text[0] ? node->text : NULL;
}

/* ---- Creators */

static bool looks_like_orcid(const char *text) {
    return strlen(text) == ORCID_LENGTH && strspn(text, "0123456789-X") == ORCID_LENGTH;
}

/* "0000-0002-1825-0097": 15 digits and a check digit by ISO 7064, MOD 11-2. */
static bool is_orcid(const char *text) {
    int total = 0;
    for (size_t i = 0; i + 1 < ORCID_LENGTH; i++) {
        if (i % 5 == 4 ? text[i] != '-' : !isdigit((unsigned char)text[i]))
            return false;
        if (i % 5 != 4)
            total = (total + text[i] - '0') * 2 % 11;
    }
    return text[ORCID_LENGTH - 1] == "0123456789X"[(12 - total) % 11];
}

/* "NAME; AFFILIATION; ORCID", the last two in any order, or not there. */
static int add_creator(cJSON *creators, const char *given, struct failure *failure) {
    cleanup_free char *copy = xstrdup(given);
    cJSON *creator = json_add_object(creators, NULL);
    char *rest = copy, *part;
    while ((part = strsep(&rest, ";"))) {
        part += strspn(part, " \t");
        for (size_t length = strlen(part); length > 0 && part[length - 1] == ' ';)
            part[--length] = '\0';
        if (strncmp(part, ORCID_PREFIX, strlen(ORCID_PREFIX)) == 0)
            part += strlen(ORCID_PREFIX);
        const char *key = !creator->child ? "name" : looks_like_orcid(part) ? "orcid" : "affiliation";
        if (!*part || cJSON_GetObjectItemCaseSensitive(creator, key))
            return failure_input(failure, NULL, 0, 0,
                                 "--creator '%.200s' is not a person; expected 'FAMILY NAME, GIVEN NAMES; "
                                 "AFFILIATION; ORCID', of which the last two may be left out",
                                 given);
        if (strcmp(key, "orcid") == 0 && !is_orcid(part))
            return failure_input(
                failure, NULL, 0, 0,
                "the ORCID '%s' is mistyped: its check digit is not that of its other digits", part);
        json_add_string(creator, key, part);
    }
    return 0;
}

/* The author of the campaign, perhaps with an address of ORCID: "Jane Doe <https://orcid.org/0000-...>". */
static int add_author(cJSON *creators, const char *author, struct failure *failure) {
    const char *address = strstr(author, ORCID_PREFIX);
    size_t length = address ? (size_t)(address - author) : strlen(author);
    while (length > 0 && strchr(" <(,;", author[length - 1]))
        length--;
    cleanup_free char *creator = xformat("%.*s%s%.*s", (int)length, author, address ? ";" : "",
                                         address ? ADDRESS_LENGTH : 0, address ? address : "");
    return add_creator(creators, creator, failure);
}

static int add_creators(struct publication *publication, struct failure *failure) {
    cJSON *creators = json_add_array(publication->metadata, "creators");
    const char *author = campaign_text(publication, "author"), *given;
    int r = 0;
    for (size_t i = 0; r == 0 && (given = verb_value_at(publication->arguments, "--creator", i)); i++)
        r = add_creator(creators, given, failure);
    if (r == 0 && !creators->child && author)
        r = add_author(creators, author, failure);
    if (r == 0 && !creators->child)
        return failure_input(failure, archive_path(publication->archive), 0, 0,
                             "the archive does not say who made it; add --creator 'FAMILY NAME, GIVEN NAMES; "
                             "AFFILIATION; ORCID', once for each person");
    return r;
}

/* ---- Licence */

/* As Zenodo calls those that people use: https://zenodo.org/api/vocabularies/licenses */
static const char *const licenses[] = {"cc-by-4.0",
                                       "cc-by-sa-4.0",
                                       "cc-by-nc-4.0",
                                       "cc-by-nd-4.0",
                                       "cc-by-nc-sa-4.0",
                                       "cc-by-nc-nd-4.0",
                                       "cc0-1.0",
                                       "odbl-1.0",
                                       "odc-by-1.0",
                                       "pddl-1.0",
                                       "etalab-2.0",
                                       "mit",
                                       "apache-2.0",
                                       "bsd-2-clause",
                                       "bsd-3-clause",
                                       "isc",
                                       "gpl-2.0-only",
                                       "gpl-2.0-or-later",
                                       "gpl-3.0-only",
                                       "gpl-3.0-or-later",
                                       "lgpl-2.1-or-later",
                                       "lgpl-3.0-or-later",
                                       "agpl-3.0-only",
                                       "agpl-3.0-or-later",
                                       "mpl-2.0",
                                       "epl-2.0",
                                       "eupl-1.2",
                                       "cecill-2.1",
                                       "cecill-b",
                                       "cecill-c",
                                       NULL};
#define OTHER_LICENSE "other-open"

/* The one of them that TEXT is, an identifier or an address of creativecommons.org or spdx.org; for another
 * address OTHER_LICENSE; NULL: it is none. */
static const char *find_license(const char *text) {
    char id[64], kind[16], version[8];
    const char *creative = strstr(text, "creativecommons.org/licenses/"),
               *spdx = strstr(text, "spdx.org/licenses/");
    if (strstr(text, "creativecommons.org/publicdomain/zero/1.0"))
        return "cc0-1.0";
    snprintf(id, sizeof id, "%s", spdx ? file_base_name(spdx) : text);
    if (creative && sscanf(creative, "creativecommons.org/licenses/%15[a-z-]/%7[0-9.]", kind, version) == 2)
        snprintf(id, sizeof id, "cc-%s-%s", kind, version);
    if (text_ends_in(id, ".html"))
        id[strlen(id) - strlen(".html")] = '\0';
    for (size_t i = 0; licenses[i]; i++)
        if (strcasecmp(licenses[i], id) == 0)
            return licenses[i];
    return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0 ? OTHER_LICENSE : NULL;
}

static int add_license(struct publication *publication, struct failure *failure) {
    const char *given = verb_value(publication->arguments, "--license"), *text = given;
    cleanup(text_clear) struct text known;
    text_init(&known, FAILURE_TEXT_SIZE);
    text_append_words(&known, licenses);
    if (!text)
        text = campaign_text(publication, "license");
    if (!text)
        return failure_input(failure, archive_path(publication->archive), 0, 0,
                             "the archive does not say under which licence it is; add --license ID, such as "
                             "cc-by-4.0 or cc0-1.0");
    publication->license = find_license(text);
    publication->license_text = text;
    if (!publication->license)
        return failure_input(failure, given ? NULL : archive_path(publication->archive), 0, 0,
                             "the licence '%.64s' is not known here; expected --license ID, one of %s, or "
                             "--license https://..., the address of its text",
                             text, known.bytes);
    json_add_string(publication->metadata, "license", publication->license);
    return 0;
}

/* ---- The rest of the metadata */

static void append_paragraph(struct text *html, const char *text) {
    text_append_string(html, "<p>");
    chart_append_escaped(html, text);
    text_append_string(html, "</p>");
}

static void add_description(struct publication *publication) {
    const struct archive_run *run = archive_run(publication->archive);
    const char *own = campaign_text(publication, "description");
    cleanup(text_clear) struct text html, nodes;
    text_init(&html, PAGE_BYTES_MAX);
    text_init(&nodes, PAGE_BYTES_MAX / 2);
    host_list_fold((const char *const *)run->nodes.items, run->nodes.count, &nodes);
    const char *experiment = run->experiment.name;
    cleanup_free char *facts =
        xformat("The %s %s (%s)%s%s%s%s: %s, %lld of %lld units done. The archive was sealed by assay %s; "
                "README.md in it "
                "says what it has. SHA-256 of %s: %s.",
                archive_kind_name((enum archive_kind)run->kind), run->name, run->run_id,
                experiment ? " of the experiment " : "", experiment ? experiment : "",
                nodes.length ? ", measured on " : "", nodes.bytes, run->status, (long long)run->counts.done,
                (long long)run->counts.planned, run->engine.version ? run->engine.version : "-",
                file_base_name(publication->path), publication->sha256);
    if (own)
        append_paragraph(&html, own);
    append_paragraph(&html, facts);
    if (strcmp(publication->license, OTHER_LICENSE) == 0) {
        cleanup_free char *address = xformat("Licence: %s", publication->license_text);
        append_paragraph(&html, address);
    }
    json_add_string(publication->metadata, "description", html.bytes);
}

static int make_metadata(struct publication *publication, struct failure *failure) {
    const struct archive_run *run = archive_run(publication->archive);
    if (!run->name || !run->run_id || !run->status)
        return failure_verification(failure, archive_path(publication->archive),
                                    "run.json has no name, no run_id or no status");
    const char *title = verb_value(publication->arguments, "--title"), *keyword;
    cJSON *metadata = publication->metadata = cJSON_CreateObject();
    json_add_string(metadata, "title", title ? title : run->name);
    json_add_string(metadata, "upload_type", "dataset");
    json_add_string(metadata, "access_right", "open");
    int r = add_creators(publication, failure);
    r = r < 0 ? r : add_license(publication, failure);
    if (r < 0)
        return r;
    add_description(publication);
    cJSON *keywords = json_add_array(metadata, "keywords");
    if (run->experiment.name)
        json_add_string(keywords, NULL, run->experiment.name);
    for (size_t i = 0; (keyword = verb_value_at(publication->arguments, "--keyword", i)); i++)
        json_add_string(keywords, NULL, keyword);
    json_add_boolean(metadata, "prereserve_doi", true);
    return 0;
}

/* ---- What is left to do */

static void append_checks(const struct publication *publication, struct text *page) {
    const struct archive_run *run = archive_run(publication->archive);
    const char *own = campaign_text(publication, "license"), *name = publication->path;
    const cJSON *creator, *creators = cJSON_GetObjectItemCaseSensitive(publication->metadata, "creators");
    char bytes[NUMBER_TEXT_SIZE];
    text_printf(page,
                "# Publishing %s on Zenodo\n\nSHA-256: `%s`\n\n## Before\n\n"
                "- [x] Every byte of the archive is what its manifest says (`assay archive verify`).\n",
                file_base_name(name), publication->sha256);
    if (strcmp(run->status, "completed") != 0)
        text_printf(page, "- [ ] The run is %s%s%s. Say so in the description, or complete it first.\n",
                    run->status, run->error ? ": " : "", run->error ? run->error : "");
    if (run->counts.flagged > 0)
        text_printf(page, "- [ ] %lld measurements are flagged by gates. Say so in the description.\n",
                    (long long)run->counts.flagged);
    if ((double)archive_bytes(publication->archive) > ZENODO_BYTES_MAX)
        text_printf(page, "- [ ] The archive has %s; Zenodo takes 50 GB for a record unless it is asked.\n",
                    number_describe_bytes((double)archive_bytes(publication->archive), bytes));
    if (strcmp(publication->license, OTHER_LICENSE) == 0)
        text_printf(
            page,
            "- [ ] `%s` is no licence that is known here: the record will say `" OTHER_LICENSE
            "`, and its description has the address. Choose the licence in the draft if Zenodo has it.\n",
            publication->license_text);
    const char *own_id = own ? find_license(own) : NULL;
    if (!own)
        text_printf(page,
                    "- [ ] The archive itself states no licence. Whoever opens it has to find `%s` in the "
                    "record; a `license` in the campaign is inside the archive.\n",
                    publication->license);
    else if (own_id != publication->license)
        text_printf(page, "- [ ] The archive itself says `%s`, and the record will say `%s`. One is wrong.\n",
                    own, publication->license);
    cJSON_ArrayForEach(creator, creators) {
        const char *person = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(creator, "name"));
        if (!strchr(person, ','))
            text_printf(page,
                        "- [ ] `%s` is not written as FAMILY NAME, GIVEN NAMES, as Zenodo cites people.\n",
                        person);
    }
    text_printf(
        page,
        "- [ ] Names, addresses and paths of yours may be public: look at `assay archive cat %s README.md`, "
        "`campaign.yaml`, `inputs.json` and `logs/engine.log`.\n"
        "- [ ] Title, creators and description in `zenodo.json` are what you want to be cited.\n",
        name);
}

static void append_steps(const struct publication *publication, struct text *page) {
    const char *path = publication->path;
    const char *const upload[] = {"curl", "-f", "--upload-file", path, NULL};
    text_append_string(
        page,
        "\n## Upload\n\nNothing has been uploaded. With a token of your account (Applications, scope "
        "deposit:write) in `TOKEN`; try it with `https://sandbox.zenodo.org` first:\n\n"
        "    zenodo=https://zenodo.org/api/deposit/depositions\n"
        "    curl -f -X POST $zenodo -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' "
        "-d @zenodo.json >deposit.json\n"
        "    ");
    text_append_command(page, upload);
    text_printf(
        page,
        " \"$(jq -r .links.bucket deposit.json)/%s\" -H \"Authorization: Bearer $TOKEN\"\n\n"
        "- [ ] The `checksum` in the answer is what `md5sum` says of the archive.\n"
        "- [ ] The draft (`jq -r .links.html deposit.json`) shows what you want.\n"
        "- [ ] Publish it there. A record that is published cannot be deleted, and its files stay as they "
        "are.\n\n## After\n\n"
        "- [ ] Cite the DOI of the record together with the SHA-256 above.\n",
        file_base_name(path));
}

static int write_files(const struct publication *publication, const char *target, struct failure *failure) {
    cleanup(export_folder_clear) struct export_folder folder = {0};
    cleanup(text_clear) struct text json, page;
    cleanup(json_cleanup) cJSON *deposit = cJSON_CreateObject();
    text_init(&json, PAGE_BYTES_MAX);
    text_init(&page, PAGE_BYTES_MAX);
    cJSON_AddItemReferenceToObject(deposit, "metadata", publication->metadata);
    json_print(deposit, true, &json);
    text_append_character(&json, '\n');
    append_checks(publication, &page);
    append_steps(publication, &page);
    int r = export_folder_begin(target, &folder, failure);
    r = r < 0 ? r : export_folder_write(&folder, "zenodo.json", json.bytes, json.length, failure);
    r = r < 0 ? r : export_folder_write(&folder, "CHECKLIST.md", page.bytes, page.length, failure);
    return r < 0 ? r : export_folder_commit(&folder, failure);
}

int archive_publish(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(publication_clear) struct publication publication = {.arguments = arguments};
    const char *path = arguments->operands[1];
    cleanup_free char *target = archive_output_folder(arguments, path, ".zenodo");
    int r = archive_open(path, &publication.archive, failure);
    r = r < 0 ? r : archive_verify(publication.archive, failure);
    r = r < 0 ? r : hash_file(path, publication.sha256, NULL, failure);
    publication.path = r < 0 ? NULL : realpath(path, NULL);
    if (r == 0 && archive_find(publication.archive, ARCHIVE_CAMPAIGN_RESOLVED, NULL))
        r = archive_read_document(publication.archive, ARCHIVE_CAMPAIGN_RESOLVED, &publication.campaign,
                                  failure);
    r = r < 0 ? r : make_metadata(&publication, failure);
    r = r < 0 ? r : write_files(&publication, target, failure);
    if (r == 0)
        printf("%s\n", shown(target).text);
    return r;
}
