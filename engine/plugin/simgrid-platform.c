#include "engine/plugin/simgrid-platform.h"

#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file being written. The first append that fails is looked at in the end. */
struct writing {
    const struct simgrid_platform *platform;
    struct text *text;
    int error;
    double link_latency; /* of a host's link */
    struct failure *failure;
};

__attribute__((format(printf, 2, 3))) static void put(struct writing *writing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = text_vprintf(writing->text, format, arguments);
    va_end(arguments);
    if (r < 0 && !writing->error)
        writing->error = r;
}

static void put_number(struct writing *writing, double value) {
    char digits[NUMBER_TEXT_SIZE];
    number_format_double(value, digits);
    put(writing, "%s", digits);
}

/* The value of an attribute, quotes included. */
static void put_value(struct writing *writing, const char *value) {
    put(writing, "\"");
    for (; *value; value++) {
        if (*value == '&')
            put(writing, "&amp;");
        else if (*value == '<')
            put(writing, "&lt;");
        else if (*value == '>')
            put(writing, "&gt;");
        else if (*value == '"')
            put(writing, "&quot;");
        else
            put(writing, "%c", *value);
    }
    put(writing, "\"");
}

/* ` NAME="VALUEunit"` */
static void put_quantity(struct writing *writing, const char *name, double value, const char *unit) {
    put(writing, " %s=\"", name);
    put_number(writing, value);
    put(writing, "%s\"", unit);
}

/* Two hyphens end a comment; what is not UTF-8 ends the file. */
static void put_comment(struct writing *writing, const char *sentence) {
    size_t length = strlen(sentence);
    bool ascii = text_invalid_utf8(sentence, length) < length;
    put(writing, "<!-- ");
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)sentence[i];
        if (byte < ' ' || byte == 127 || (ascii && byte > 127))
            put(writing, "?");
        else if (byte != '-' || i == 0 || sentence[i - 1] != '-')
            put(writing, "%c", byte);
    }
    put(writing, " -->\n");
}

/* ---- What SimGrid would not load */

/* What may be in an attribute of XML, and in a name of a host. */
static int check_text(const struct writing *writing, const char *what, const char *text, bool empty) {
    size_t length = strlen(text);
    bool good =
        length <= SIMGRID_NAME_MAX && (empty || length > 0) && text_invalid_utf8(text, length) == length;
    for (size_t i = 0; good && i < length; i++)
        good = (unsigned char)text[i] > ' ' && text[i] != 127;
    if (good)
        return 0;
    return failure_input(
        writing->failure, NULL, 0, 0,
        "%s '%.128s' cannot be a name of SimGrid; expected %s%d bytes of UTF-8 without blanks", what, text,
        empty ? "at most " : "1 to ", (int)SIMGRID_NAME_MAX);
}

/* Reads a whole number of at most 9 digits; 0 where there is none. */
static size_t read_whole(const char **text, size_t *ret) {
    size_t digits = strspn(*text, "0123456789");
    *ret = digits > 0 && digits <= 9 ? strtoul(*text, NULL, 10) : 0;
    *text += digits;
    return digits <= 9 ? digits : 0;
}

/* "0-31,40": how many hosts. */
static int count_hosts(const struct writing *writing, const char *radical, size_t *ret) {
    size_t count = 0;
    bool good = strlen(radical) <= SIMGRID_SHAPE_MAX;
    for (const char *at = radical; good; at++) {
        size_t first = 0, last = 0;
        good = read_whole(&at, &first) > 0;
        last = first;
        if (good && *at == '-') {
            at++;
            good = read_whole(&at, &last) > 0 && last >= first;
        }
        good = good && last - first < SIMGRID_HOSTS_MAX;
        count += good ? last - first + 1 : 0;
        if (*at != ',')
            good = good && *at == '\0' && count <= SIMGRID_HOSTS_MAX;
        if (*at == '\0')
            break;
        good = good && *at == ',';
    }
    *ret = count;
    if (good)
        return 0;
    return failure_input(
        writing->failure, NULL, 0, 0,
        "'%.128s' is no list of hosts; expected numbers and ranges such as 0-31,40, of at most "
        "%d hosts",
        radical, (int)SIMGRID_HOSTS_MAX);
}

/* One part of a fat tree: COUNT numbers with commas between, up to END. Their product in *RET. */
static bool read_level(const char **text, size_t count, char end, size_t *ret) {
    *ret = 1;
    for (size_t i = 0; i < count; i++) {
        size_t number;
        if (read_whole(text, &number) == 0 || number == 0 || number > SIMGRID_HOSTS_MAX)
            return false;
        *ret = *ret <= SIMGRID_HOSTS_MAX ? *ret * number : *ret;
        if (**text != (i + 1 < count ? ',' : end))
            return false;
        *text += **text != '\0';
    }
    return true;
}

static int check_fat_tree(const struct writing *writing, size_t hosts) {
    const char *at = writing->platform->fat_tree;
    size_t levels = 0, below = 0, product;
    bool good = strlen(at) <= SIMGRID_SHAPE_MAX && read_level(&at, 1, ';', &levels) &&
                levels <= SIMGRID_LEVELS_MAX && read_level(&at, levels, ';', &below) &&
                read_level(&at, levels, ';', &product) && read_level(&at, levels, '\0', &product);
    if (!good)
        return failure_input(
            writing->failure, NULL, 0, 0,
            "'%.128s' is no fat tree; expected LEVELS;BELOW;ABOVE;LINKS, the last three with a "
            "number for each level, such as 2;4,8;1,2;1,2",
            writing->platform->fat_tree);
    if (below != hosts)
        return failure_input(writing->failure, NULL, 0, 0,
                             "a fat tree of '%.128s' has %zu hosts; the platform has %zu",
                             writing->platform->fat_tree, below, hosts);
    return 0;
}

static int check_hosts(const struct writing *writing) {
    const struct simgrid_platform *platform = writing->platform;
    size_t count = 0;
    if (platform->hosts && platform->fat_tree)
        return failure_input(
            writing->failure, NULL, 0, 0,
            "a fat tree of SimGrid has hosts that are alike; these have speeds of their own");
    if (!platform->hosts) {
        int r = check_text(writing, "the prefix", platform->prefix, true);
        r = r < 0 ? r : check_text(writing, "the suffix", platform->suffix, true);
        r = r < 0 ? r : count_hosts(writing, platform->radical, &count);
        return r < 0 || !platform->fat_tree ? r : check_fat_tree(writing, count);
    }
    for (size_t i = 0; i < platform->hosts->count; i++) {
        int r = check_text(writing, "the host", platform->hosts->hosts[i].name, false);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A latency and a bandwidth come together. */
static int check_link(const struct writing *writing, const char *name, double latency, double bandwidth) {
    if (isnan(latency) == isnan(bandwidth))
        return 0;
    return failure_input(writing->failure, NULL, 0, 0, "the %s has no %s (--%s-%s)", name,
                         isnan(latency) ? "latency" : "bandwidth", name,
                         isnan(latency) ? "latency" : "bandwidth");
}

static int check(struct writing *writing) {
    const struct simgrid_platform *platform = writing->platform;
    int r = check_hosts(writing);
    r = r < 0 ? r : check_link(writing, "loopback", platform->loopback_latency, platform->loopback_bandwidth);
    r = r < 0 ? r : check_link(writing, "backbone", platform->backbone_latency, platform->backbone_bandwidth);
    if (r < 0)
        return r;
    double shared = isnan(platform->backbone_latency) ? 0 : platform->backbone_latency;
    if (platform->fat_tree && shared > 0)
        return failure_input(writing->failure, NULL, 0, 0, "a fat tree has no backbone");
    writing->link_latency = (platform->latency - shared) / 2;
    if (writing->link_latency >= 0)
        return 0;
    return failure_input(writing->failure, NULL, 0, 0,
                         "the backbone's latency of %g s is more than the %g s between two hosts", shared,
                         platform->latency);
}

/* ---- Configuration */

static void put_property(struct writing *writing, const char *name, const char *value) {
    put(writing, "    <prop id=");
    put_value(writing, name);
    put(writing, " value=");
    put_value(writing, value);
    put(writing, "/>\n");
}

static void put_number_property(struct writing *writing, const char *name, double value) {
    char digits[NUMBER_TEXT_SIZE];
    if (isnan(value))
        return;
    number_format_double(value, digits);
    put_property(writing, name, digits);
}

/* The size above which SMPI takes an entry that holds from FROM on. */
static double break_of(const struct writing *writing, enum simgrid_table_name name, double from) {
    bool factor = name == SIMGRID_LATENCY_FACTOR || name == SIMGRID_BANDWIDTH_FACTOR;
    if (from == 0 || !writing->platform->exact_breaks)
        return from;
    return from - 1 + (factor ? SIMGRID_ENVELOPE : 0);
}

static void put_table(struct writing *writing, enum simgrid_table_name name) {
    static const char *const properties[SIMGRID_TABLES] = {"smpi/os", "smpi/ois", "smpi/or",
                                                           "smpi/lat-factor", "smpi/bw-factor"};
    const struct simgrid_table *table = &writing->platform->network->tables[name];
    bool factor = name == SIMGRID_LATENCY_FACTOR || name == SIMGRID_BANDWIDTH_FACTOR;
    if (table->count == 0)
        return;
    put(writing, "    <prop id=\"%s\" value=\"", properties[name]);
    for (size_t i = 0; i < table->count; i++) {
        put(writing, "%s", i ? ";" : "");
        put_number(writing, break_of(writing, name, table->entries[i].from));
        for (size_t v = 0; v < (factor ? 1 : 2); v++) {
            put(writing, ":");
            put_number(writing, table->entries[i].values[v]);
        }
    }
    put(writing, "\"/>\n");
}

static bool is_set(const struct simgrid_platform *platform, const char *name) {
    for (size_t i = 0; i < platform->setting_count; i++)
        if (strcmp(platform->settings[i].name, name) == 0)
            return true;
    return false;
}

/* On a host of this speed MPI code takes as long as where it is run. */
static double mean_speed(const struct simgrid_platform *platform) {
    double sum = 0;
    for (size_t i = 0; platform->hosts && i < platform->hosts->count; i++)
        sum += platform->hosts->hosts[i].speed;
    return platform->hosts ? sum / (double)platform->hosts->count : platform->speed;
}

static void put_configuration(struct writing *writing) {
    const struct simgrid_platform *platform = writing->platform;
    const struct simgrid_network *network = platform->network;
    put(writing, "  <config id=\"General\">\n");
    if (network) {
        for (size_t i = 0; i < SIMGRID_TABLES; i++)
            put_table(writing, (enum simgrid_table_name)i);
        put_number_property(writing, "smpi/async-small-thresh", network->async_threshold);
        put_number_property(writing, "smpi/send-is-detached-thresh", network->detached_threshold);
        put_number_property(writing, "smpi/wtime", network->wtime);
        put_number_property(writing, "smpi/iprobe", network->iprobe);
        put_number_property(writing, "smpi/test", network->test);
    }
    if (!is_set(platform, "smpi/host-speed")) {
        char digits[NUMBER_TEXT_SIZE], speed[NUMBER_TEXT_SIZE + 1];
        number_format_double(mean_speed(platform), digits);
        snprintf(speed, sizeof speed, "%sf", digits);
        put_property(writing, "smpi/host-speed", speed);
    }
    for (size_t i = 0; i < platform->setting_count; i++)
        put_property(writing, platform->settings[i].name, platform->settings[i].value);
    put(writing, "  </config>\n");
}

/* ---- Hosts and links */

static void put_cluster(struct writing *writing) {
    const struct simgrid_platform *platform = writing->platform;
    put(writing, "    <cluster id=\"cluster\" prefix=");
    put_value(writing, platform->prefix);
    put(writing, " suffix=");
    put_value(writing, platform->suffix);
    put(writing, " radical=");
    put_value(writing, platform->radical);
    put_quantity(writing, "speed", platform->speed, "f");
    put(writing, " core=\"%d\"\n            ", platform->cores);
    put_quantity(writing, "bw", platform->bandwidth, "Bps");
    put_quantity(writing, "lat", writing->link_latency, "s");
    put(writing, " sharing_policy=\"SPLITDUPLEX\"");
    if (!isnan(platform->loopback_latency)) {
        put(writing, "\n            ");
        put_quantity(writing, "loopback_bw", platform->loopback_bandwidth, "Bps");
        put_quantity(writing, "loopback_lat", platform->loopback_latency, "s");
    }
    if (!isnan(platform->backbone_latency)) {
        put(writing, "\n            ");
        put_quantity(writing, "bb_bw", platform->backbone_bandwidth, "Bps");
        put_quantity(writing, "bb_lat", platform->backbone_latency, "s");
    }
    if (platform->fat_tree)
        put(writing, "\n             topology=\"FAT_TREE\" topo_parameters=\"%s\"", platform->fat_tree);
    put(writing, "/>\n");
}

/* A name made of SUFFIX and the host's, as an attribute. */
static void put_name(struct writing *writing, const char *attribute, const char *prefix, const char *name,
                     const char *suffix) {
    char whole[SIMGRID_NAME_MAX + 64];
    snprintf(whole, sizeof whole, "%s%s%s", prefix, name, suffix);
    put(writing, " %s=", attribute);
    put_value(writing, whole);
}

static void put_link(struct writing *writing, const char *prefix, const char *name, double bandwidth,
                     double latency, const char *policy) {
    put(writing, "      <link");
    put_name(writing, "id", prefix, name, "");
    put_quantity(writing, "bandwidth", bandwidth, "Bps");
    put_quantity(writing, "latency", latency, "s");
    put(writing, " sharing_policy=\"%s\"/>\n", policy);
}

static void put_host(struct writing *writing, const struct simgrid_host *host) {
    const struct simgrid_platform *platform = writing->platform;
    put(writing, "      <host");
    put_name(writing, "id", "", host->name, "");
    put_quantity(writing, "speed", host->speed, "f");
    put(writing, " core=\"%d\"/>\n", platform->cores);
    put_link(writing, "link-", host->name, platform->bandwidth, writing->link_latency, "SPLITDUPLEX");
    put(writing, "      <host_link");
    put_name(writing, "id", "", host->name, "");
    put_name(writing, "up", "link-", host->name, "_UP");
    put_name(writing, "down", "link-", host->name, "_DOWN");
    put(writing, "/>\n");
    if (!isnan(platform->loopback_latency))
        put_link(writing, "loopback-", host->name, platform->loopback_bandwidth, platform->loopback_latency,
                 "FATPIPE");
}

static void put_zone(struct writing *writing) {
    const struct simgrid_platform *platform = writing->platform;
    put(writing, "    <zone id=\"cluster\" routing=\"Cluster\">\n");
    for (size_t i = 0; i < platform->hosts->count; i++)
        put_host(writing, &platform->hosts->hosts[i]);
    if (!isnan(platform->backbone_latency)) {
        put(writing, "      <backbone id=\"backbone\"");
        put_quantity(writing, "bandwidth", platform->backbone_bandwidth, "Bps");
        put_quantity(writing, "latency", platform->backbone_latency, "s");
        put(writing, "/>\n");
    }
    for (size_t i = 0; !isnan(platform->loopback_latency) && i < platform->hosts->count; i++) {
        const char *name = platform->hosts->hosts[i].name;
        put(writing, "      <route");
        put_name(writing, "src", "", name, "");
        put_name(writing, "dst", "", name, "");
        put(writing, "><link_ctn");
        put_name(writing, "id", "loopback-", name, "");
        put(writing, "/></route>\n");
    }
    put(writing, "    </zone>\n");
}

/* ---- All of it */

static void put_units(struct writing *writing) {
    const struct simgrid_platform *platform = writing->platform;
    char latency[NUMBER_TEXT_SIZE], bandwidth[NUMBER_TEXT_SIZE], sentence[256];
    number_format_double(platform->latency, latency);
    number_format_double(platform->bandwidth, bandwidth);
    snprintf(sentence, sizeof sentence,
             "Between two hosts: %s s and %s byte/s, over two links of half the latency each.", latency,
             bandwidth);
    put(writing, "  ");
    put_comment(writing, sentence);
    put(writing, "  ");
    put_comment(writing,
                "Speeds are flop/s of a core. Tables: size in bytes, then s and s/byte (os, ois, or), or "
                "a factor (lat, bw).");
    if (platform->hosts) {
        snprintf(sentence, sizeof sentence,
                 "Speeds follow from what a unit of %.64s takes; smpi/host-speed is their mean.",
                 platform->hosts->term);
        put(writing, "  ");
        put_comment(writing, sentence);
    }
}

int simgrid_platform_write(const struct simgrid_platform *platform, struct text *ret,
                           struct failure *failure) {
    struct writing writing = {.platform = platform, .text = ret, .failure = failure};
    int r = check(&writing);
    if (r < 0)
        return r;
    put(&writing, "<?xml version=\"1.0\"?>\n"
                  "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n");
    for (size_t i = 0; i < platform->origin_count; i++)
        put_comment(&writing, platform->origins[i]);
    put(&writing, "<platform version=\"4.1\">\n");
    put_units(&writing);
    put_configuration(&writing);
    put(&writing, "  <zone id=\"world\" routing=\"Full\">\n");
    if (platform->hosts)
        put_zone(&writing);
    else
        put_cluster(&writing);
    put(&writing, "  </zone>\n</platform>\n");
    if (writing.error == -EFBIG)
        return failure_set(failure, -EFBIG, "the platform is larger than %zu bytes", ret->limit);
    return writing.error ? failure_memory(failure) : 0;
}
