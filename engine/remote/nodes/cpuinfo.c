#include "engine/remote/nodes/cpuinfo.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <string.h>

char *cpuinfo_value(const char *cpuinfo, const char *key) {
    size_t length = strlen(key);
    for (const char *line = cpuinfo; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0)
            continue;
        const char *value = line + length + strspn(line + length, " \t");
        if (*value++ != ':')
            continue;
        value += strspn(value, " \t");
        return xstrndup(value, strcspn(value, "\n"));
    }
    return NULL;
}

char *cpuinfo_model(const char *cpuinfo) {
    static const char *const keys[] = {"model name", "cpu", "uarch", "cpu model"};
    char *model = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !model; i++)
        model = cpuinfo_value(cpuinfo, keys[i]);
    cleanup_free char *maker = cpuinfo_value(cpuinfo, "CPU implementer");
    cleanup_free char *part = cpuinfo_value(cpuinfo, "CPU part");
    return model || !maker || !part ? model : xformat("implementer %s, part %s", maker, part);
}
