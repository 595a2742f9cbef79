#include "engine/predict/inputs.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/extrapolation.h"
#include "engine/model/model.h"
#include "engine/model/noise.h"
#include "engine/model/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A part of what a model said that is smaller than this may be extrapolated without a warning. */
static const double noteworthy = 0.01;

/* ---- Roles
 * ---------------------------------------------------------------------------------------------------- */

static bool takes(const struct predict_role *role, const char *kind) {
    for (size_t i = 0; role->kinds && role->kinds[i]; i++)
        if (strcmp(role->kinds[i], kind) == 0)
            return true;
    return !role->kinds;
}

/* "dgemm (linear, piecewise), network (smpi)". */
static void list_roles(const struct predict_role *roles, struct text *list) {
    for (size_t i = 0; roles[i].name; i++) {
        (void)text_printf(list, "%s%s (", i ? ", " : "", roles[i].name); /* too long: cut */
        for (size_t k = 0; roles[i].kinds && roles[i].kinds[k]; k++)
            (void)text_printf(list, "%s%s", k ? ", " : "", roles[i].kinds[k]);
        (void)text_append_string(list, roles[i].kinds ? ")" : "any kind)");
    }
}

/* The only role that takes models of this kind, with MANY several of them; there may be none, or several. */
static int find_role_of_kind(const struct inputs *inputs, const struct model *model, bool many, size_t *ret,
                             struct failure *failure) {
    const struct predict_role *roles = inputs->library->predict->roles;
    size_t found = 0;
    for (size_t i = 0; i < inputs->role_count; i++)
        if (takes(&roles[i], model->kind) && (!many || roles[i].many)) {
            *ret = found == 0 ? i : *ret;
            found++;
        }
    if (found == 1)
        return 0;
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    list_roles(roles, &list);
    if (found > 1)
        return failure_input(failure, model->file, 0, 0,
                             "the model may have one of several roles; expected ROLE=FILE, with one of %s",
                             list.bytes);
    return failure_input(failure, model->file, 0, 0, "the model is of the kind '%.64s'; expected %s",
                         model->kind, list.bytes);
}

/* The role called WORD (LENGTH bytes), or role_count. */
static size_t find_role(const struct inputs *inputs, const char *word, size_t length) {
    const struct predict_role *roles = inputs->library->predict->roles;
    size_t i = 0;
    while (i < inputs->role_count &&
           (strlen(roles[i].name) != length || strncmp(roles[i].name, word, length) != 0))
        i++;
    return i;
}

static int refuse_word(const struct inputs *inputs, const char *word, size_t length,
                       struct failure *failure) {
    const struct predict_role *roles = inputs->library->predict->roles;
    cleanup_free char *name = xstrndup(word, length);
    cleanup_free const char **names = xcalloc(inputs->role_count + 1, sizeof *names);
    for (size_t i = 0; i < inputs->role_count; i++)
        names[i] = roles[i].name;
    const char *nearest = text_nearest(name, names, inputs->role_count);
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    list_roles(roles, &list);
    return failure_input(failure, NULL, 0, 0, "'%.128s': there is no role '%.64s'%s%s%s", word, name,
                         nearest ? "; did you mean '" : "; expected one of ", nearest ? nearest : list.bytes,
                         nearest ? "'?" : "");
}

/* What stands before the first '=' of WORD, where that is no part of a path; 0: nothing. */
static size_t name_length(const char *word) {
    size_t length = strcspn(word, "=/");
    return word[length] == '=' && !file_exists(word) ? length : 0;
}

static int choose_role(const struct inputs *inputs, const char *word, struct input *input,
                       struct failure *failure) {
    const struct predict_role *roles = inputs->library->predict->roles;
    size_t length = name_length(word);
    if (length == 0)
        return find_role_of_kind(inputs, input->model, false, &input->role, failure);
    input->role = find_role(inputs, word, length);
    if (input->role == inputs->role_count)
        return find_role_of_kind(inputs, input->model, true, &input->role, NULL) == 0
                   ? 0
                   : refuse_word(inputs, word, length, failure);
    if (takes(&roles[input->role], input->model->kind))
        return 0;
    cleanup(text_clear) struct text list;
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; roles[input->role].kinds[i]; i++)
        (void)text_printf(&list, "%s%s", i ? ", " : "", roles[input->role].kinds[i]); /* too long: cut */
    return failure_input(failure, input->model->file, 0, 0,
                         "the model is of the kind '%.64s'; expected one of %s as the role '%s'",
                         input->model->kind, list.bytes, roles[input->role].name);
}

/* A response that should be a time, and whose unit is not known, is taken for seconds. */
static int check_time(struct inputs *inputs, struct input *input, struct failure *failure) {
    double seconds;
    if (!inputs->library->predict->roles[input->role].is_time)
        return 0;
    int r = model_response_seconds(input->model, &seconds, failure);
    if (r < 0 || input->model->response_seconds != 0)
        return r;
    input->model->response_seconds = 1;
    inputs->notes = xrealloc(inputs->notes, (inputs->note_count + 1) * sizeof *inputs->notes);
    inputs->notes[inputs->note_count++] = xformat("the unit of '%s' in '%s' is not known; it is taken as s",
                                                  input->model->response, input->source.file);
    return 0;
}

/* ---- Opening
 * -------------------------------------------------------------------------------------------------- */

static int read_input(struct inputs *inputs, const char *word, struct failure *failure) {
    struct input *input = &inputs->items[inputs->count++];
    size_t length = name_length(word);
    const char *path = length ? word + length + 1 : word, *file = file_base_name(path);
    char *sha256 = xcalloc(1, HASH_HEX_SIZE);
    input->source = (struct predict_source){.file = xstrdup(file), .sha256 = sha256};
    input->source.name = length ? xstrndup(word, length) : xstrndup(file, strcspn(file, "."));
    int r = model_file_read(path, &input->model, failure);
    r = r < 0 ? r : hash_file(path, sha256, NULL, failure);
    r = r < 0 ? r : choose_role(inputs, word, input, failure);
    r = r < 0 ? r : check_time(inputs, input, failure);
    if (r < 0 || !evaluator_knows(input->model->kind))
        return r;
    r = evaluator_new(input->model, &input->evaluator, failure);
    if (r < 0)
        return r;
    size_t count = input->evaluator->input_count + 1;
    input->bound = xcalloc(count, sizeof *input->bound);
    input->codes = xcalloc(count, sizeof *input->codes);
    input->row = xcalloc(count, sizeof *input->row);
    return 0;
}

/* In the order of roles; within one as they were given. */
static void sort_by_role(struct inputs *inputs) {
    for (size_t i = 1; i < inputs->count; i++)
        for (size_t k = i; k > 0 && inputs->items[k - 1].role > inputs->items[k].role; k--) {
            struct input other = inputs->items[k];
            inputs->items[k] = inputs->items[k - 1];
            inputs->items[k - 1] = other;
        }
}

static int check_counts(const struct inputs *inputs, const size_t *counts, struct failure *failure) {
    const struct predict_role *roles = inputs->library->predict->roles;
    for (size_t i = 0; i < inputs->role_count; i++) {
        if (counts[i] == 0 && !roles[i].optional)
            return failure_input(failure, NULL, 0, 0,
                                 "there is no model for the role '%s' (%s); give %s=FILE", roles[i].name,
                                 roles[i].help, roles[i].name);
        if (counts[i] > 1 && !roles[i].many)
            return failure_input(failure, NULL, 0, 0, "%zu models have the role '%s'; expected one",
                                 counts[i], roles[i].name);
    }
    return 0;
}

/* The lists that the plugin sees; the models in them change with each draw. */
static int make_lists(struct inputs *inputs, struct failure *failure) {
    size_t *counts = xcalloc(inputs->role_count + 1, sizeof *counts);
    const struct model *const **lists = xcalloc(inputs->role_count + 1, sizeof *lists);
    const struct predict_source **sources = xcalloc(inputs->role_count + 1, sizeof *sources);
    const struct model **models = xcalloc(inputs->count + 1, sizeof *models);
    struct predict_source *origins = xcalloc(inputs->count + 1, sizeof *origins);
    for (size_t i = 0; i < inputs->count; i++) {
        counts[inputs->items[i].role]++;
        models[i] = inputs->items[i].model;
        origins[i] = inputs->items[i].source;
    }
    for (size_t role = 0, i = 0; role <= inputs->role_count; i += counts[role], role++) {
        lists[role] = models + i; /* that of role 0 is the start of them all */
        sources[role] = origins + i;
    }
    inputs->view.models = lists;
    inputs->view.model_counts = counts;
    inputs->view.sources = sources;
    return check_counts(inputs, counts, failure);
}

/* ---- What the plugin calls
 * ------------------------------------------------------------------------------------ */

static struct input *find_input(struct inputs *inputs, const struct model *model) {
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->items[i].model == model || inputs->items[i].drawn == model)
            return &inputs->items[i];
    return NULL;
}

static bool is_bound(const struct input *input, const char *const *names, size_t count) {
    if (!input->names || input->name_count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(input->names[i], names[i]) != 0)
            return false;
    return true;
}

static void forget_names(struct input *input) {
    for (size_t i = 0; input->names && i < input->name_count; i++)
        free(input->names[i]);
    free(take_pointer(input->names));
}

/* Finds the columns of the evaluator among NAMES: "m", or "operation=Send" for one of texts. */
static int bind_names(struct input *input, const char *const *names, size_t count,
                      struct plugin_message *message) {
    if (is_bound(input, names, count))
        return 0;
    forget_names(input);
    for (size_t i = 0; i < input->evaluator->input_count; i++) {
        const struct evaluator_input *column = &input->evaluator->inputs[i];
        size_t length = strlen(column->name), k = 0;
        while (k < count && (strncmp(names[k], column->name, length) != 0 ||
                             names[k][length] != (column->is_text ? '=' : '\0')))
            k++;
        if (k == count)
            return plugin_refuse(message, -EINVAL,
                                 "the model '%s' needs the column '%.128s'%s, which is not known here",
                                 input->source.file, column->name, column->is_text ? ", a text" : "");
        input->bound[i] = k;
        input->codes[i] = column->is_text ? evaluator_code(input->evaluator, i, names[k] + length + 1) : NAN;
    }
    input->names = xcalloc(count + 1, sizeof *input->names);
    input->name_count = count;
    for (size_t i = 0; i < count; i++)
        input->names[i] = xstrdup(names[i]);
    return 0;
}

static void count_extrapolation(struct input *input, const struct predict_value *value) {
    double weight = fabs(value->mean);
    input->all += weight;
    if (!extrapolation_is_outside(value))
        return;
    input->outside += weight;
    if (input->extrapolated.extrapolated_by == 0 || weight > input->largest) {
        input->largest = weight;
        input->extrapolated = *value;
    }
}

static double draw_noise_of(struct inputs *inputs, const struct input *input, const struct model_group *group,
                            double sigma) {
    double normal = random_stream_normal(&inputs->noise), uniform = random_stream_uniform(&inputs->noise);
    const struct model_part *part = evaluator_part(input->evaluator, group, input->row);
    double offset = part ? noise_draw(&part->noise, sigma, normal, uniform) : NAN;
    return isfinite(offset) ? offset : 0;
}

static int evaluate(void *context, const struct model *model, size_t group, const char *const *names,
                    const double *values, size_t count, bool draw_noise, struct predict_value *ret,
                    struct plugin_message *message) {
    struct inputs *inputs = context;
    struct input *input = find_input(inputs, model);
    *ret = (struct predict_value){NAN, NAN, .standard_error = NAN, .extrapolated_by = 1};
    if (!input || group >= input->model->group_count)
        return plugin_refuse(message, -EINVAL, "the plugin evaluates a model or group that it was not given");
    if (!input->evaluator)
        return plugin_refuse(message, -EINVAL,
                             "the model '%s' is of the kind '%s', which is not evaluated row by row",
                             input->source.file, model->kind);
    int r = bind_names(input, names, count, message);
    if (r < 0)
        return r;
    for (size_t i = 0; i < input->evaluator->input_count; i++)
        input->row[i] = input->evaluator->inputs[i].is_text ? input->codes[i] : values[input->bound[i]];
    const struct model_group *of = &(input->drawn ? input->drawn : input->model)->groups[group];
    if (input->drawn)
        r = evaluator_row(input->evaluator, of, input->row, &ret->mean, &ret->sigma);
    else
        r = evaluator_predict(input->evaluator, of, input->row, ret);
    if (r < 0)
        return plugin_refuse(message, r, "the model '%s' has no value at %s = %g%s", input->source.file,
                             count ? names[0] : "1", count ? values[0] : 1, count > 1 ? ", ..." : "");
    if (!input->drawn)
        count_extrapolation(input, ret);
    else if (draw_noise)
        ret->mean += draw_noise_of(inputs, input, of, ret->sigma);
    return 0;
}

static double uniform(void *context, const char *name, uint64_t index) {
    struct random_stream stream;
    random_stream_init(&stream, ((struct inputs *)context)->view.seed, name, index);
    return random_stream_uniform(&stream);
}

static double normal(void *context, const char *name, uint64_t index) {
    struct random_stream stream;
    random_stream_init(&stream, ((struct inputs *)context)->view.seed, name, index);
    return random_stream_normal(&stream);
}

int inputs_open(struct inputs *inputs, const struct library *library, const char *const *words, size_t count,
                uint64_t seed, struct failure *failure) {
    *inputs = (struct inputs){.library = library, .seed = seed};
    inputs->view = (struct predict_inputs){.size = sizeof inputs->view,
                                           .context = inputs,
                                           .seed = seed,
                                           .evaluate = evaluate,
                                           .uniform = uniform,
                                           .normal = normal,
                                           .engine = "assay " ASSAY_VERSION};
    while (library->predict->roles[inputs->role_count].name)
        inputs->role_count++;
    if (count > INPUTS_MODELS_MAX)
        return failure_input(failure, NULL, 0, 0, "%zu models were given; expected at most %d", count,
                             (int)INPUTS_MODELS_MAX);
    inputs->items = xcalloc(count + 1, sizeof *inputs->items);
    for (size_t i = 0; i < count; i++) {
        int r = read_input(inputs, words[i], failure);
        if (r < 0)
            return r;
    }
    sort_by_role(inputs);
    inputs_begin(inputs);
    return make_lists(inputs, failure);
}

void inputs_clear(struct inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        struct input *input = &inputs->items[i];
        model_draw_free(input->drawn);
        evaluator_free(input->evaluator);
        model_file_free(input->model);
        forget_names(input);
        free(input->bound), free(input->codes), free(input->row);
        free((char *)input->source.file), free((char *)input->source.sha256),
            free((char *)input->source.name);
    }
    for (size_t i = 0; i < inputs->note_count; i++)
        free(inputs->notes[i]);
    if (inputs->view.models) {
        free((const struct model **)inputs->view.models[0]);
        free((struct predict_source *)inputs->view.sources[0]);
    }
    free((const struct model *const **)inputs->view.models), free((size_t *)inputs->view.model_counts);
    free((const struct predict_source **)inputs->view.sources);
    free(inputs->items), free(inputs->notes);
    *inputs = (struct inputs){0};
}

/* ---- Draws
 * ---------------------------------------------------------------------------------------------------- */

static double draw_coefficient(void *context, const char *name, uint64_t index) {
    struct random_stream stream;
    random_stream_init(&stream, *(uint64_t *)context, name, index);
    return random_stream_normal(&stream);
}

void inputs_draw(struct inputs *inputs, uint64_t draw) {
    const struct model **models = (const struct model **)inputs->view.models[0];
    struct random_stream stream;
    random_stream_init(&stream, inputs->seed, "draw", draw);
    inputs->view.is_draw = draw > 0;
    inputs->view.seed = draw > 0 ? random_stream_bits(&stream) : inputs->seed;
    for (size_t i = 0; i < inputs->count; i++) {
        struct input *input = &inputs->items[i];
        uint64_t seed = random_stream_bits(&stream);
        model_draw_free(take_pointer(input->drawn));
        if (draw > 0)
            input->drawn = model_draw(input->model, draw_coefficient, &seed);
        models[i] = draw > 0 ? input->drawn : input->model;
    }
}

void inputs_begin(struct inputs *inputs) {
    random_stream_init(&inputs->noise, inputs->view.seed, "noise", 0);
    for (size_t i = 0; i < inputs->count; i++) {
        struct input *input = &inputs->items[i];
        input->all = input->outside = input->largest = 0;
        input->extrapolated = (struct predict_value){0};
    }
}

void inputs_warn(const struct inputs *inputs, struct predict_output *output) {
    for (size_t i = 0; i < inputs->count; i++) {
        const struct input *input = &inputs->items[i];
        char reason[EXTRAPOLATION_SENTENCE_SIZE];
        if (input->outside > noteworthy * input->all)
            predict_remark(output, true,
                           "%.0f %% of what '%s' says here is extrapolated; where it is most, %s",
                           100 * input->outside / input->all, input->source.file,
                           extrapolation_describe(&input->extrapolated, reason));
    }
}
