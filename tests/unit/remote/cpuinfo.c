/* What the lines of /proc/cpuinfo make of a processor's model. */
#include "engine/remote/nodes/cpuinfo.h"

#include "tests/test.h"

TEST(models_of_every_processor) {
    static const struct {
        const char *cpuinfo, *model;
    } cases[] = {
        {"processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz\nstepping\t: "
         "4\n",
         "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz"},
        {"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 2166.0MHz\n",
         "POWER9, altivec supported"},
        {"hart\t\t: 2\nisa\t\t: rv64imafdc\nuarch\t\t: sifive,u74-mc\n", "sifive,u74-mc"},
        {"processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n",
         "implementer 0x41, part 0xd0c"},
        {"CPU part\t: 0xd0c\n", NULL},
        {"model name", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *model = cpuinfo_model(cases[i].cpuinfo);
        if (cases[i].model)
            assert_string_equal(model, cases[i].model);
        else
            assert_null(model);
    }
}
