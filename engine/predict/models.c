#include "engine/predict/models.h"

#include "engine/documents/document.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/extrapolation.h"
#include "engine/model/model.h"
#include "engine/model/read.h"
#include "engine/numerics/random.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    DRAWN_BYTES_MAX = 1 << 26, /* of the drawn models of one model */
    CPUS_MAX = 1 << 16,        /* of a machine; a cpu_set_t has 1,024 */
};

/* Extrapolated predictions up to this share of a model's total get no warning. */
static const double noteworthy = 0.01;

/* ---- Roles
 * ---------------------------------------------------------------------------------------------------- */

static const char file_kind[] = "file"; /* of the model that stands for a file */

static bool takes(const struct predict_role *role, const char *kind) {
    if (role->is_file || strcmp(kind, file_kind) == 0)
        return role->is_file && strcmp(kind, file_kind) == 0;
    for (size_t i = 0; role->kinds && role->kinds[i]; i++)
        if (strcmp(role->kinds[i], kind) == 0)
            return true;
    return !role->kinds;
}

/* What stands before the first '=' of WORD, where that is no part of a path; 0: nothing. */
static size_t name_length(const char *word) {
    size_t length = strcspn(word, "=/");
    return word[length] == '=' && !file_exists(word) ? length : 0;
}

const char *models_path(const char *word) {
    size_t length = name_length(word);
    return length ? word + length + 1 : word;
}

/* Fails with "REASON; expected the role dgemm (linear, piecewise), ...". Returns -EINVAL. */
static int refuse_role(const struct predict_role *roles, const char *file, const char *reason,
                       struct failure *failure) {
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; roles[i].name; i++) { /* what is too long is cut */
        (void)text_printf(&list, "%s%s (%s", i ? ", " : "", roles[i].name,
                          roles[i].is_file ? "a file"
                          : roles[i].kinds ? ""
                                           : "any kind");
        text_append_words(&list, roles[i].kinds);
        (void)text_append_character(&list, ')');
    }
    return failure_input(failure, file, 0, 0, "%s; expected the role %s", reason, list.bytes);
}

/* The index of the role that WORD names; role_count: it names none. */
static size_t find_role(const struct role_models *models, const char *word) {
    const struct predict_role *roles = models->library->predict->roles;
    size_t length = name_length(word), i = 0;
    while (i < models->role_count &&
           (length == 0 || strlen(roles[i].name) != length || strncmp(roles[i].name, word, length) != 0))
        i++;
    return i;
}

/* Sets the role of a given model: the one that WORD names, else the only one that accepts its kind. -EINVAL:
 * none or several do. */
static int choose_role(const struct role_models *models, const char *word, struct given_model *given,
                       struct failure *failure) {
    const struct predict_role *roles = models->library->predict->roles;
    const char *kind = given->model->kind, *file = given->source.file;
    size_t length = name_length(word), called = find_role(models, word), fitting = 0;
    for (size_t i = 0; i < models->role_count; i++)
        if (takes(&roles[i], kind) && (length == 0 || roles[i].many)) {
            given->role = i;
            fitting++;
        }
    bool is_called = called < models->role_count;
    if (is_called)
        given->role = called;
    given->source.name =
        length > 0 && !is_called ? xstrndup(word, length) : xstrndup(file, strcspn(file, "."));
    if (is_called ? takes(&roles[called], kind) : fitting == 1)
        return 0;
    cleanup_free char *reason =
        is_called     ? xformat("the model has the kind '%.64s', which the role '%s' does not accept", kind,
                                roles[called].name)
        : length > 0  ? xformat("there is no role '%.*s'", (int)(length < 64 ? length : 64), word)
        : fitting > 1 ? xformat("several roles accept the model; choose a role with ROLE=FILE")
                      : xformat("the model has the kind '%.64s', which no role accepts", kind);
    return refuse_role(roles, given->model->file, reason, failure);
}

/* Requires a response in units of time where the role needs that. An unknown unit counts as seconds, with a
 * note. */
static int check_time(struct role_models *models, struct given_model *given, struct failure *failure) {
    double seconds;
    if (!models->library->predict->roles[given->role].is_time)
        return 0;
    int r = model_response_seconds(given->model, &seconds, failure);
    if (r < 0 || given->model->response_seconds != 0)
        return r;
    given->model->response_seconds = 1;
    xappend(&models->notes, &models->note_count,
            xformat("the unit of the response '%s' in '%s' is not known; seconds are "
                    "assumed",
                    given->model->response, given->source.file));
    return 0;
}

/* ---- Opening
 * -------------------------------------------------------------------------------------------------- */

/* Grades a given model; each file that is not usable gets one remark. */
static void grade_model(const struct role_models *models, struct given_model *given) {
    given->grade = model_grade(given->model);
    given->verdict = model_verdict(given->model);
    given->source.warning = given->grade == REPORT_NOT_USABLE ? given->verdict : NULL;
    for (const struct given_model *before = models->items; before < given; before++)
        if (strcmp(before->source.sha256, given->source.sha256) == 0)
            return;
    if (given->grade != REPORT_USABLE)
        given->remark =
            xformat("'%s' %s %s", given->source.file, given->source.warning ? "is" : "was", given->verdict);
}

/* Whether the fitted model of an archive is used, and a note on it: only if its role takes several models, or
 * has none yet. */
static bool note_if_needed(struct role_models *models, const char *word) {
    size_t role = find_role(models, word);
    bool note_if_needed = true;
    for (size_t i = 0; i < models->count && !models->library->predict->roles[role].many; i++)
        note_if_needed = note_if_needed && models->items[i].role != role;
    xappend(&models->notes, &models->note_count,
            xformat(note_if_needed ? "fitted '%s' for the role '%s'"
                                   : "'%s' is not used, because a model is given for the role '%s'",
                    models_path(word), models->library->predict->roles[role].name));
    return note_if_needed;
}

/* Reads a model or file that the user gave as WORD; CONTENT, if not NULL, is its text. The file is read once,
 * since it may be a pipe. */
static int read_given(struct role_models *models, const char *word, const char *content,
                      struct failure *failure) {
    struct given_model *given = &models->items[models->count++];
    const char *path = models_path(word);
    char *sha256 = xcalloc(1, HASH_HEX_SIZE);
    given->source = (struct predict_source){.file = xstrdup(file_base_name(path)), .sha256 = sha256};
    cleanup(text_clear) struct text bytes; /* read once: a pipe cannot be opened again to be hashed */
    text_init(&bytes, DOCUMENT_JSON_BYTES_MAX);
    int r = content ? text_append_string(&bytes, content) : file_read_or_pipe(path, &bytes, failure);
    size_t role = find_role(models, word);
    bool is_file = role < models->role_count && models->library->predict->roles[role].is_file;
    if (r == 0 && is_file) {
        given->model = model_new(path);
        given->model->kind = xstrdup(file_kind);
    } else if (r == 0)
        r = model_file_parse(path, bytes.bytes, bytes.length, &given->model, failure);
    r = r < 0 ? r : hash_bytes(bytes.bytes, bytes.length, sha256);
    given->length = bytes.length;
    given->content = text_take(&bytes);
    if (r == 0 && is_file) {
        given->source.length = given->length;
        given->source.bytes = given->content;
    } else if (r == 0)
        grade_model(models, given);
    r = r < 0 ? r : choose_role(models, word, given, failure);
    r = r < 0 ? r : check_time(models, given, failure);
    if (r == 0 && evaluator_knows(given->model->kind))
        r = evaluator_new(given->model, &given->evaluator, failure);
    return r;
}

/* -EINVAL if a required role has no model, or a single role several. */
static int check_counts(const struct role_models *models, const size_t *counts, struct failure *failure) {
    const struct predict_role *roles = models->library->predict->roles;
    for (size_t i = 0; i < models->role_count; i++) {
        if (counts[i] == 0 && !roles[i].optional)
            return failure_input(failure, NULL, 0, 0, "no %s is given for the role '%s' (%s); add %s=FILE",
                                 roles[i].is_file ? "file" : "model", roles[i].name, roles[i].help,
                                 roles[i].name);
        if (counts[i] > 1 && !roles[i].many)
            return failure_input(failure, NULL, 0, 0,
                                 "%zu models are given for the role '%s'; expected a single model: "
                                 "remove the others",
                                 counts[i], roles[i].name);
    }
    return 0;
}

/* Makes the lists by role that the plugin sees; the models in them change with each draw. */
static int make_lists(struct role_models *models, struct failure *failure) {
    size_t *counts = xcalloc(models->role_count + 1, sizeof *counts), k = 0;
    const struct model *const **lists = xcalloc(models->role_count + 1, sizeof *lists);
    const struct predict_source **sources = xcalloc(models->role_count + 1, sizeof *sources);
    const struct model **pointers = xcalloc(models->count + 1, sizeof *pointers);
    struct predict_source *origins = xcalloc(models->count + 1, sizeof *origins);
    for (size_t role = 0; role <= models->role_count; role++) {
        lists[role] = pointers + k; /* that of role 0 is the start of them all */
        sources[role] = origins + k;
        for (size_t i = 0; role < models->role_count && i < models->count; i++)
            if (models->items[i].role == role) {
                pointers[k] = models->items[i].model;
                origins[k] = models->items[i].source;
                models->items[i].seen = &pointers[k++];
                counts[role]++;
            }
    }
    models->view.models = lists;
    models->view.model_counts = counts;
    models->view.sources = sources;
    return check_counts(models, counts, failure);
}

/* ---- What the plugin calls
 * ------------------------------------------------------------------------------------ */

static struct given_model *find_given(struct role_models *models, const struct model *model) {
    for (size_t i = 0; i < models->count; i++)
        if (models->items[i].model == model || models->items[i].drawn == model)
            return &models->items[i];
    return NULL;
}

/* Binds columns of a model for calls by the plugin (predict.h). */
static int bind_call(void *context, const struct model *model, size_t group, const char *const *names,
                     size_t count, const struct predict_call **ret, struct plugin_message *message) {
    struct role_models *models = context;
    struct given_model *given = find_given(models, model);
    struct bound *bound;
    struct failure failure = {0};
    if (!given || group >= given->model->group_count)
        return plugin_refuse(message, -EINVAL,
                             "the plugin uses a model or group that assay has not given to it");
    if (!given->evaluator)
        return plugin_refuse(message, -EINVAL,
                             "the model '%s' has the kind '%s', which gives no value for a row",
                             given->source.file, model->kind);
    if (bound_new(given->evaluator, &given->model->groups[group], names, count, given, &bound, &failure) < 0)
        return plugin_refuse(message, -EINVAL, "%s", failure.text);
    models->calls = xrealloc(models->calls, (models->call_count + 1) * sizeof *models->calls);
    models->calls[models->call_count++] = (struct bound_model){bound, given, group};
    *ret = bound_call(bound);
    bound_follow(bound, &(given->drawn ? given->drawn : given->model)->groups[group], models->view.seed);
    return 0;
}

static int refuse_row(const struct bound *bound, const double *values, struct plugin_message *message) {
    const struct given_model *given = bound_owner(bound);
    return plugin_refuse(message, -EDOM, "the model '%s' has no value at %s = %g%s", given->source.file,
                         bound_name(bound), values[0], given->evaluator->input_count > 1 ? ", ..." : "");
}

/* Remembers an extrapolated row with the largest mean so far, for the warning. */
static void remember_largest(const struct bound *bound, const double *values, double mean) {
    struct given_model *given = bound_owner(bound);
    given->largest = mean;
    bound_extrapolation(bound, values, &given->extrapolated);
}

/* Evaluates COUNT rows for the plugin, counting extrapolated ones. Negative with MESSAGE: a row has no
 * value. */
static int evaluate_rows(void *context, const struct predict_call *call, const double *const *columns,
                         size_t count, double *ret_means, double *ret_sigmas, bool *ret_outside,
                         struct plugin_message *message) {
    (void)context;
    const struct bound *bound = bound_of(call);
    struct given_model *given = bound_owner(bound);
    double values[BOUND_VALUES_MAX], all = 0, outside = 0, largest = given->largest;
    size_t row = SIZE_MAX;
    bound_rows(bound, columns, count, ret_means, ret_sigmas, given->drawn ? NULL : ret_outside);
    for (size_t i = 0; i < count; i++) {
        double mean = fabs(ret_means[i]);
        if (isnan(mean)) {
            bound_values(bound, columns, i, values);
            return refuse_row(bound, values, message);
        }
        ret_outside[i] = !given->drawn && ret_outside[i];
        all += mean;
        outside += ret_outside[i] ? mean : 0;
        row = ret_outside[i] && !(largest > 0 && mean <= largest) ? i : row;
        largest = row == i ? mean : largest;
    }
    if (given->drawn)
        return 0;
    given->all += all;
    given->outside += outside;
    if (row != SIZE_MAX) {
        bound_values(bound, columns, row, values);
        remember_largest(bound, values, largest);
    }
    return 0;
}

/* Evaluates one row for the plugin, as evaluate_rows(). */
static int evaluate_row(void *context, const struct predict_call *call, const double *values,
                        struct predict_value *ret, struct plugin_message *message) {
    (void)context;
    const struct bound *bound = bound_of(call);
    struct given_model *given = bound_owner(bound);
    bound_value(bound, values, &ret->mean, &ret->sigma);
    ret->is_extrapolated = false;
    double mean = fabs(ret->mean);
    if (isnan(mean))
        return refuse_row(bound, values, message);
    if (given->drawn)
        return 0;
    given->all += mean;
    ret->is_extrapolated = bound_is_outside(bound, values);
    given->outside += ret->is_extrapolated ? mean : 0;
    if (ret->is_extrapolated && !(given->largest > 0 && mean <= given->largest))
        remember_largest(bound, values, mean);
    return 0;
}

static double standard_error(void *context, const struct predict_call *call, const double *values) {
    (void)context;
    return bound_standard_error(bound_of(call), values);
}

static double uniform(void *context, const char *name, uint64_t index) {
    struct random_stream stream;
    random_stream_init(&stream, ((struct role_models *)context)->view.seed, name, index);
    return random_stream_uniform(&stream);
}

/* For model_draw() too, whose context is a seed. */
static double normal_of_seed(void *seed, const char *name, uint64_t index) {
    struct random_stream stream;
    random_stream_init(&stream, *(uint64_t *)seed, name, index);
    return random_stream_normal(&stream);
}

static double normal(void *context, const char *name, uint64_t index) {
    return normal_of_seed(&((struct role_models *)context)->view.seed, name, index);
}

static size_t cpu_count(void) {
    cleanup_free cpu_set_t *allowed = xcalloc(CPUS_MAX / CPU_SETSIZE, sizeof *allowed);
    size_t size = CPUS_MAX / CPU_SETSIZE * sizeof *allowed;
    return sched_getaffinity(0, size, allowed) == 0 ? (size_t)CPU_COUNT_S(size, allowed) : 1;
}

/* Reads the given models, and makes the inputs that the plugin sees. To be cleared after failures too. */
int models_open(struct role_models *models, const struct library *library, const char *const *words,
                const char *const *texts, size_t count, uint64_t seed, struct failure *failure) {
    *models = (struct role_models){.library = library, .seed = seed};
    models->view = (struct predict_inputs){.size = sizeof models->view,
                                           .context = models,
                                           .seed = seed,
                                           .bind = bind_call,
                                           .evaluate = evaluate_row,
                                           .evaluate_rows = evaluate_rows,
                                           .standard_error = standard_error,
                                           .uniform = uniform,
                                           .normal = normal,
                                           .engine = "assay " ASSAY_VERSION,
                                           .threads = cpu_count()};
    while (library->predict->roles[models->role_count].name)
        models->role_count++;
    if (count > MODELS_MAX)
        return failure_input(failure, NULL, 0, 0, "%zu models were given; expected at most %d", count,
                             (int)MODELS_MAX);
    models->items = xcalloc(count + 1, sizeof *models->items);
    for (size_t i = 0; i < count; i++) {
        const char *content = texts ? texts[i] : NULL;
        int r =
            content && !note_if_needed(models, words[i]) ? 0 : read_given(models, words[i], content, failure);
        if (r < 0)
            return r;
    }
    models_begin(models);
    return make_lists(models, failure);
}

/* Frees the models and what was made of them. */
void models_clear(struct role_models *models) {
    for (size_t i = 0; i < models->count; i++) {
        struct given_model *given = &models->items[i];
        model_draw_free(given->is_kept ? NULL : given->drawn);
        for (size_t d = 0; d < given->draw_count; d++)
            model_draw_free(given->draws[d]);
        free(given->draws);
        evaluator_free(given->evaluator);
        model_free(given->model);
        free(given->verdict), free(given->remark);
        free((char *)given->source.file), free((char *)given->source.sha256),
            free((char *)given->source.name), free(given->content);
    }
    for (size_t i = 0; i < models->note_count; i++)
        free(models->notes[i]);
    for (size_t i = 0; i < models->call_count; i++)
        bound_free(models->calls[i].bound);
    free(models->calls);
    if (models->view.models) {
        free((const struct model **)models->view.models[0]);
        free((struct predict_source *)models->view.sources[0]);
    }
    free((const struct model *const **)models->view.models), free((size_t *)models->view.model_counts);
    free((const struct predict_source **)models->view.sources);
    free(models->items), free(models->notes);
    *models = (struct role_models){0};
}

/* ---- Draws
 * ---------------------------------------------------------------------------------------------------- */

/* How many draws of MODEL are kept. */
static size_t draws_kept(const struct model *model) {
    size_t parts = 1;
    for (size_t g = 0; g < model->group_count; g++)
        parts += model->groups[g].part_count;
    return DRAWN_BYTES_MAX /
           (parts * (sizeof *model->groups->parts + model->term_count * sizeof(struct model_estimate)));
}

/* Replaces the model by draw number DRAW of it (0: the model itself). Drawn models are kept for later
 * scenarios as far as there is memory. */
static void draw_model(struct given_model *given, uint64_t draw, uint64_t seed) {
    if (!given->is_kept)
        model_draw_free(given->drawn);
    given->drawn = NULL;
    given->is_kept = draw > 0 && draw <= given->draw_count;
    if (given->is_kept)
        given->drawn = given->draws[draw - 1];
    else if (draw > 0)
        given->drawn = model_draw(given->model, normal_of_seed, &seed);
    if (draw != given->draw_count + 1 || draw > draws_kept(given->model))
        return;
    given->draws = xrealloc(given->draws, draw * sizeof(struct model *));
    given->draws[given->draw_count++] = given->drawn;
    given->is_kept = true;
}

/* Sets all models, and calls bound to them, to draw number DRAW; 0: the models as given. */
void models_draw(struct role_models *models, uint64_t draw) {
    struct random_stream stream;
    random_stream_init(&stream, models->seed, "draw", draw);
    models->view.is_draw = draw > 0;
    models->view.seed = draw > 0 ? random_stream_bits(&stream) : models->seed;
    for (size_t i = 0; i < models->count; i++) {
        struct given_model *given = &models->items[i];
        draw_model(given, draw, random_stream_bits(&stream));
        *given->seen = draw > 0 ? given->drawn : given->model;
    }
    for (size_t i = 0; i < models->call_count; i++) {
        const struct bound_model *call = &models->calls[i];
        bound_follow(call->bound, &(*call->given->seen)->groups[call->group], models->view.seed);
    }
}

void models_begin(struct role_models *models) {
    for (size_t i = 0; i < models->count; i++) {
        struct given_model *given = &models->items[i];
        given->all = given->outside = given->largest = 0;
        given->extrapolated = (struct evaluator_value){0};
    }
}

/* Warns of each model whose predictions were extrapolated to a noteworthy share. */
void models_warn(const struct role_models *models, struct predict_output *output) {
    for (size_t i = 0; i < models->count; i++) {
        const struct given_model *given = &models->items[i];
        char reason[EXTRAPOLATION_SENTENCE_SIZE];
        if (given->outside > noteworthy * given->all)
            predict_remark(output, true,
                           "%.0f %% of the total that '%s' predicts is extrapolated; in the "
                           "largest extrapolated prediction, %s",
                           100 * given->outside / given->all, given->source.file,
                           extrapolation_describe(&given->extrapolated, reason));
    }
}
