/* How long messages travel: what the host of predictors does for roles, parameters, draws and rows. As
 * export-travel it writes a text. */
#include <assay/predict.h>

static const char *const linear[] = {"linear", "piecewise", NULL}, *const smpi[] = {"smpi", NULL};
static const struct predict_role roles[] = {
    {"time", linear, .is_time = true, .help = "of a message over its size"},
    {"network", smpi, .optional = true, .many = true, .help = "ignored"},
    {"platform", .is_file = true, .optional = true, .help = "a file that is named in a note"},
    {0},
};
static const struct plugin_parameter options[] = {
    {"scale", PLUGIN_NUMBER, "1", .default_text = "1", .minimum = 0.5, .maximum = 4, .help = "of all times"},
    {0},
};
static const char *const noises[] = {"none", "one", NULL};
static const struct plugin_parameter parameters[] = {
    {"size", PLUGIN_NUMBER, "By", .required = true, .plausible_minimum = 1, .plausible_maximum = 1e9,
     .help = "of the message"},
    {"wait", PLUGIN_NUMBER, "s", .default_text = "0", .maximum = 1e9, .help = "before it"},
    {"noise", PLUGIN_WORD, .choices = noises, .default_text = "none", .help = "of one message"},
    {"hops", PLUGIN_NUMBER, "1", .default_text = "0", .maximum = 10, .integer = true, .help = "0: one row"},
    {"stop", PLUGIN_TEXT, .help = "a file that is made before run() waits to be stopped"},
    {0},
};
enum { SIZE, WAIT, NOISE, HOPS, STOP };

static int travel_open(const struct predict_inputs *inputs, void **ret_state,
                       struct plugin_message *message) {
    if (inputs->options[0].number == 3)
        return plugin_refuse(message, -EINVAL, "scale 3 is refused");
    static const char *const names[] = {"size"};
    return inputs->bind(inputs->context, inputs->models[0][0], 0, names, 1,
                        (const struct predict_call **)ret_state, message);
}

static int travel_time(const struct predict_call *call, const struct predict_inputs *inputs,
                       const struct plugin_value *values, double *ret, struct plugin_message *message) {
    struct predict_value value;
    int r = inputs->evaluate(inputs->context, call, &values[SIZE].number, &value, message);
    if (r == 0 && inputs->is_draw && values[NOISE].number == 1)
        value.mean = call->draw(call, &values[SIZE].number, 0, 0);
    *ret = inputs->options[0].number * value.mean + values[WAIT].number;
    return r;
}

#ifndef TRAVEL_TEXT
static const struct column columns[] = {
    {"time", .unit = "s", .help = "of the message"},
    {"error", .unit = "s", .help = "standard error", .exact = true},
    {"slope", .unit = "s/By", .help = "of the model that is drawn", .detail = true},
    {"stream", .unit = "1", .help = "a number of a stream", .exact = true},
    {"where", .help = "which hop"},
    {0},
};

static const struct column over_size[] = {
    {"to", .unit = "By", .help = "size"}, {"way", .unit = "s", .help = "time of that size"}, {0}};
static const struct predict_table tables[] = {
    {"halves", "the time of smaller messages", PREDICT_CURVE, over_size},
    {"way", "where the message is", PREDICT_INTERVALS},
    {0},
};

/* Row by row, whether it is asked for or not. */
static int travel_tables(const struct predict_call *call, struct predict_output *output, double size,
                         double time) {
    int r = 0;
    for (double part = size / 4; r == 0 && part <= size; part *= 2)
        r = output->table_row(output->context, 0, (double[]){part, call->mean(call, &part)}, NULL);
    for (int hop = 0; r == 0 && output->wants(output->context, 1) && hop < 2; hop++)
        r = output->table_row(output->context, 1, (double[]){0, hop * time / 2, (hop + 1) * time / 2, 0},
                              (const char *const[]){hop ? "b" : "a", NULL, NULL, "<hop>"});
    return r;
}

static int travel_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                      double *ret, struct predict_output *output, struct plugin_message *message) {
    int r = travel_time(state, inputs, values, &ret[0], message);
    r = r < 0 ? r : travel_tables(state, output, values[SIZE].number, ret[0]);
    if (r < 0)
        return r;
    if (inputs->is_draw && output->wants(output->context, 0))
        return plugin_refuse(message, -EINVAL, "a draw wants a table");
    if (values[SIZE].number == 13)
        return plugin_refuse(message, -EDOM, "13 has no answer");
    ret[1] = inputs->standard_error(inputs->context, state, &values[SIZE].number);
    ret[2] = inputs->models[0][0]->groups[0].parts[0].estimates[1].estimate;
    ret[3] = inputs->uniform(inputs->context, "travel", 7);
    predict_remark(output, false, "a note");
    if (inputs->model_counts[2] > 0) {
        const struct predict_source *platform = inputs->sources[2];
        predict_remark(output, false, "%s has %zu bytes, '%.3s...', and the hash %.8s; %zu threads",
                       platform->file, platform->length, platform->bytes, platform->sha256, inputs->threads);
    }
    FILE *file = values[STOP].text ? fopen(values[STOP].text, "w") : NULL;
    if (file) {
        fclose(file);
        while ((r = output->progress(output->context, 0.5)) == 0)
            ;
        return r;
    }
    for (int hop = 1; hop <= (int)values[HOPS].number; hop++) {
        const char *const texts[] = {NULL, NULL, NULL, NULL, hop == 1 ? "first" : "later"};
        ret[0] *= hop;
        if ((r = output->row(output->context, ret, texts)) < 0)
            return r;
    }
    return 0;
}
ASSAY_PREDICT_PLUGIN("travel", "1.0", "how long messages travel", .roles = roles, .options = options,
                     .parameters = parameters, .columns = columns, .open = travel_open, .run = travel_run,
                     .tables = tables);
#else
static int travel_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                      double *ret, struct predict_output *output, struct plugin_message *message) {
    double time;
    char text[256];
    (void)ret;
    int r = travel_time(state, inputs, values, &time, message);
    if (r < 0)
        return r;
    int length = snprintf(text, sizeof text, "%s: %g s by %s (%.8s)\n", inputs->sources[0]->name, time,
                          inputs->sources[0]->file, inputs->sources[0]->sha256);
    return output->text(output->context, text, (size_t)length);
}
ASSAY_PREDICT_PLUGIN("travel", "1.0", "how long a message travels, as a text", .roles = roles,
                     .options = options, .parameters = parameters, .suffix = ".txt", .open = travel_open,
                     .run = travel_run);
#endif
