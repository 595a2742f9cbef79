#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "blas-library.h"

#include "rows.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { CANDIDATES_MAX = 4 };

/* File names by falling version. "%s" is the machine's name: Debian keeps the reference BLAS in a folder of
 * its own, for libblas.so.3 may be a link to any other BLAS. */
static const struct {
    const char *name;
    const char *candidates[CANDIDATES_MAX + 1];
    const char *package; /* where Debian has it */
} known[] = {
    {"openblas", {"libopenblas.so.0", "libopenblasp.so.0", "libopenblas.so"}, "libopenblas0-pthread"},
    {"blis", {"libblis.so.4", "libblis.so.3", "libblis-mt.so", "libblis.so"}, "libblis4-pthread"},
    {"reference", {"/usr/lib/%s-linux-gnu/blas/libblas.so.3", "libblas.so.3", "libblas.so"}, "libblas3"},
    {"mkl", {"libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"}, "libmkl-rt (non-free)"},
};

/* Sets the number of threads in the environment of all BLAS libraries, which read it when they are loaded.
 * MKL's layers are set only where the user has not set them. */
static void set_threads(unsigned threads) {
    static const char *const variables[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                                            "BLIS_NUM_THREADS", "MKL_NUM_THREADS"};
    char text[16];
    snprintf(text, sizeof text, "%u", threads);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i], text, 1);
    setenv("MKL_DYNAMIC", "FALSE", 1);
    setenv("MKL_INTERFACE_LAYER", "LP64", 0);
    setenv("MKL_THREADING_LAYER", threads == 1 ? "SEQUENTIAL" : "GNU", 0);
}

/* dlsym for functions: ISO C has no conversion from an object's pointer to a function's. */
static void find_function(void *handle, const char *symbol, void *ret_function) {
    void *found = dlsym(handle, symbol);
    memcpy(ret_function, &found, sizeof found);
}

/* Whether a library with the name of the reference BLAS is OpenBLAS, BLIS or MKL instead. */
static bool is_another_blas(void *handle) {
    return dlsym(handle, "openblas_get_config") || dlsym(handle, "bli_info_get_version_str") ||
           dlsym(handle, "mkl_get_version_string");
}

/* Loads the first candidate that exists. If none does: ends the program, and says which were tried and which
 * package has the BLAS. */
static void *load_known(size_t which) {
    struct utsname machine;
    char tried[1024] = "", why[1024] = "";
    uname(&machine);
    for (const char *const *candidate = known[which].candidates; *candidate; candidate++) {
        char path[512];
        const char *placeholder = strstr(*candidate, "%s");
        snprintf(path, sizeof path, "%.*s%s%s", (int)strcspn(*candidate, "%"), *candidate,
                 placeholder ? machine.machine : "", placeholder ? placeholder + 2 : "");
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        bool is_other_blas = handle && strcmp(known[which].name, "reference") == 0 && is_another_blas(handle);
        if (handle && !is_other_blas)
            return handle;
        if (is_other_blas) {
            snprintf(why, sizeof why, "%s is another BLAS on this machine", path);
            dlclose(handle);
        } else {
            snprintf(why, sizeof why, "%s", dlerror());
        }
        size_t used = strlen(tried);
        snprintf(tried + used, sizeof tried - used, "%s%s", used ? ", " : "", path);
    }
    die(EXIT_WRONG, "cannot load BLAS '%s': tried %s: %s; Debian has it in the package %s", known[which].name,
        tried, why, known[which].package);
}

/* The handle of a known BLAS or of a library by its path; ends the program if it cannot be loaded. */
static void *load(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return load_known(i);
    if (!strchr(name, '/'))
        die(EXIT_INPUT,
            "--blas '%s' is not known; expected openblas, blis, reference, mkl, or a path with a slash",
            name);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        die(EXIT_WRONG, "cannot load BLAS '%s': %s", name, dlerror());
    return handle;
}

struct blas_library blas_library_load(const char *name, unsigned threads) {
    set_threads(threads);
    struct blas_library library = {.name = name, .handle = load(name)};
    void (*set_num_threads)(int);
    find_function(library.handle, "openblas_set_num_threads", &set_num_threads);
    if (set_num_threads)
        set_num_threads((int)threads);
    return library;
}

blas_function *blas_library_find(const struct blas_library *library, const char *symbol) {
    blas_function *function;
    find_function(library->handle, symbol, &function);
    if (!function)
        die(EXIT_WRONG, "cannot use BLAS '%s': the library has no %s: %s", library->name, symbol, dlerror());
    return function;
}

/* Prints the library's name, file, version, detected processor and threads as facts. */
void blas_library_facts(const struct blas_library *library, blas_function *function, unsigned threads) {
    fact("blas", "%s", library->name);
    Dl_info place;
    void *symbol;
    memcpy(&symbol, &function, sizeof symbol);
    char path[PATH_MAX];
    if (dladdr(symbol, &place) && place.dli_fname)
        fact("blas_library", "%s", realpath(place.dli_fname, path) ? path : place.dli_fname);
    char *(*openblas_config)(void), *(*openblas_core)(void), *(*blis_version)(void);
    void (*mkl_version)(char *, int);
    int (*openblas_threads)(void);
    find_function(library->handle, "openblas_get_config", &openblas_config);
    find_function(library->handle, "openblas_get_corename", &openblas_core);
    find_function(library->handle, "openblas_get_num_threads", &openblas_threads);
    find_function(library->handle, "bli_info_get_version_str", &blis_version);
    find_function(library->handle, "mkl_get_version_string", &mkl_version);
    char version[512] = "";
    if (mkl_version)
        mkl_version(version, (int)sizeof version - 1);
    if (openblas_config)
        fact("blas_version", "%s", openblas_config());
    else if (blis_version)
        fact("blas_version", "BLIS %s", blis_version());
    else if (version[0])
        fact("blas_version", "%s", version);
    if (openblas_core)
        fact("blas_core", "%s", openblas_core());
    fact("threads", "%d", openblas_threads ? openblas_threads() : (int)threads);
}
