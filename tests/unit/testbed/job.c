/* When the job ends that the engine runs in, by its environment. */
#include "engine/testbed/testbed.h"
#include "tests/test.h"

static void says(const char *value, int64_t expected) {
    assert_int_equal(setenv("SLURM_JOB_END_TIME", value, 1), 0);
    if (testbed_job_deadline(NULL) != expected)
        fail_msg("'%s': %lld, expected %lld", value, (long long)testbed_job_deadline(NULL),
                 (long long)expected);
}

TEST(job_end) {
    unsetenv("SLURM_JOB_END_TIME");
    assert_int_equal(testbed_job_deadline(NULL), 0);
    says("1795363200", 1795363200000000000);
    says("1", 1000000000);
    /* What is no time says nothing. */
    says("", 0);
    says("0", 0);
    says("-5", 0);
    says("Unknown", 0);
    says("1795363200 ", 0);
    says("1.7e9", 0);
    says("9223372036", 9223372036000000000);
    says("9223372037", 0);
    says("99999999999999999999", 0);
}
