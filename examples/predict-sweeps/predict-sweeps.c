/* The time of a stencil code: sweeps over a square grid in parts of ROWS rows a process, by a model of one
 * sweep over the columns "rows" and "columns" of a part. The slowest group of the model sets the pace. */
#include <assay/predict.h>

static const char *const names[] = {"rows", "columns"};
static const struct predict_role roles[] = {
    {"sweep", .is_time = true, .help = "the time of one sweep over rows and columns"}, {0}};
static const struct plugin_parameter parameters[] = {
    {"size", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e9, .required = true, .help = "rows of the grid"},
    {"processes", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e6, .default_text = "1",
     .help = "that share the rows"},
    {"sweeps", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e9, .default_text = "1",
     .help = "over the grid"},
    {0}};
static const struct column columns[] = {{"time", .unit = "s", .help = "of all sweeps", .goal = COLUMN_LESS},
                                        {"slowest", .help = "group that sets the pace"},
                                        {0}};

static int open_sweeps(const struct predict_inputs *inputs, void **ret, struct plugin_message *message) {
    const struct predict_call **calls;
    int r = predict_bind(inputs, inputs->models[0][0], names, 2, &calls, message);
    *ret = calls;
    return r;
}

static int run_sweeps(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                      double *ret, struct predict_output *output, struct plugin_message *message) {
    const struct predict_call *const *calls = state;
    double seconds = inputs->models[0][0]->response_seconds * values[2].number;
    double part[] = {values[0].number / values[1].number, values[0].number};
    const char *texts[] = {NULL, NULL};
    ret[0] = 0;
    for (size_t g = 0; calls[g]; g++) {
        struct predict_value sweep;
        int r = inputs->evaluate(inputs->context, calls[g], part, &sweep, message);
        if (r < 0)
            return r;
        if (sweep.mean * seconds > ret[0]) {
            ret[0] = sweep.mean * seconds;
            texts[1] = inputs->models[0][0]->groups[g].name;
        }
    }
    return output->row(output->context, ret, texts);
}

ASSAY_PREDICT_PLUGIN("sweeps", "1.0", "sweeps over a grid by a model of one sweep", .roles = roles,
                     .parameters = parameters, .columns = columns, .open = open_sweeps, .run = run_sweeps,
                     .close = free);
