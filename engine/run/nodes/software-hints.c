/* Which Debian package has what a build misses. */
#include "engine/run/nodes/software.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 8 };

static const struct {
    const char *packages;
    const char *names[NAMES_MAX]; /* of programs, headers, and libraries as the linker is given them */
} hints[] = {
    {"libopenmpi-dev or libmpich-dev", {"mpicc", "mpicxx", "mpic++", "mpif90", "mpifort", "mpi.h", "-lmpi"}},
    {"openmpi-bin or mpich", {"mpirun", "mpiexec"}},
    {"libopenblas-dev", {"-lopenblas", "openblas_config.h"}},
    {"libblis-dev", {"-lblis", "blis.h"}},
    {"libopenblas-dev, libblis-dev or libatlas-base-dev", {"cblas.h", "-lblas", "-lcblas"}},
    {"libopenblas-dev or liblapack-dev", {"-llapack"}},
    {"liblapacke-dev", {"lapacke.h", "-llapacke"}},
    {"libfftw3-dev", {"fftw3.h", "-lfftw3"}},
    {"libsimgrid-dev", {"smpicc", "smpirun", "-lsimgrid"}},
    {"gcc and libc6-dev", {"gcc", "cc", "c99", "stdio.h", "stdlib.h"}},
    {"g++", {"g++", "c++"}},
    {"gfortran", {"gfortran", "f77", "f95", "-lgfortran"}},
    {"make", {"make", "gmake"}},
    {"cmake", {"cmake"}},
    {"git", {"git"}},
    {"pkg-config", {"pkg-config"}},
    {"autoconf", {"autoconf", "autoreconf"}},
};

/* How shells, make, compilers, linkers and the agent say that a name is not there. */
static const struct {
    const char *before, *after;
} complaints[] = {
    {"", ": not found"},
    {"", ": command not found"},
    {"", ": Command not found"},
    {"", ": No such file"},
    {"", "': No such file"},
    {"cannot find ", ""},
    {"unable to find library ", ""},
};

static bool is_of_name(char character) {
    return isalnum((unsigned char)character) || (character && strchr("-_./+", character));
}

/* Is NAME, as such a complaint has it, in TEXT, and not a part of another name? */
static bool complains_of(const char *text, const char *name) {
    char complaint[128];
    for (size_t i = 0; i < sizeof complaints / sizeof *complaints; i++) {
        snprintf(complaint, sizeof complaint, "%s%s%s", complaints[i].before, name, complaints[i].after);
        for (const char *at = text; (at = strstr(at, complaint)); at++)
            if ((at == text || !is_of_name(at[-1])) &&
                (complaints[i].after[0] || !is_of_name(at[strlen(complaint)])))
                return true;
    }
    return false;
}

void software_add_hint(struct failure *failure) {
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        for (size_t k = 0; k < NAMES_MAX && hints[i].names[k]; k++)
            if (complains_of(failure->text, hints[i].names[k])) {
                size_t length = strlen(failure->text);
                snprintf(failure->text + length, sizeof failure->text - length, " (%s: Debian's %s)",
                         hints[i].names[k], hints[i].packages);
                failure->kind = FAILURE_INPUT;
                return;
            }
}
