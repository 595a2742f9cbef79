/* What looks like a secret, by names and by values, and what does not. */
#include "engine/foundation/secret.h"
#include "tests/test.h"

#define PEM "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl"

TEST(variables) {
    static const char *const secret[] = {"OMP_DB_URL=postgres://u:PW@h",
                                         "LC_Y=ghp_0123456789abcdef",
                                         "MPIRUN_PW=x",
                                         "MYSQL_PWD=x",
                                         "http_proxy=http://u:p@proxy:3128/",
                                         "HTTPS_PROXY=http://token@proxy",
                                         "DATABASE_URL=mysql://a:b@h/d",
                                         "SLURM_JWT=x",
                                         "XAUTHORITY=/root/.Xauthority",
                                         "SSH_AUTH_SOCK=x",
                                         "aws_secret_access_key=x",
                                         "GPG_KEY=x",
                                         "PGPASSWORD=x",
                                         "SSHPASS=x",
                                         "X_API_KEYS=x",
                                         "GH_PAT=x",
                                         "LC_Credential=x",
                                         "OMP_X=Server=h;Uid=u;Pwd=p",
                                         "MPI_X=host=h password=p",
                                         "UCX_X=glpat-abcdefgh",
                                         "OMPI_X=xoxb-12-34-ab",
                                         "FI_X=AKIAIOSFODNN7EXAMPLE",
                                         "TZ=eyJhbGciOiJIUzI1NiJ9.e30.sig",
                                         "LC_X=github_pat_11AA",
                                         "OMP_URL=https://h/x?a=1&access_token=s",
                                         "MPI_URL=https://h/b?sv=1&sig=s",
                                         "MPI_PEM=" PEM,
                                         "LD_PRELOAD=a https://u:p@h b",
                                         "ALL_PROXY=u:p@proxy:3128",
                                         "DBPWD=x",
                                         "DB_PSWD=x",
                                         "OMP_ARGS=run --password=x",
                                         "MPI_ARGS=--token=x",
                                         "SLACK_WEBHOOK_URL=https://h/x",
                                         "LC_X=glptt-abcdefgh",
                                         "FI_X=sk_live_abcdefgh"};
    static const char *const harmless[] = {"PATH=/usr/bin:/bin",
                                           "PWD=/home/u",
                                           "OLDPWD=/",
                                           "MODULE_PATH=SOME_TOKEN=kept",
                                           "HOME=/root",
                                           "http_proxy=http://proxy:3128/",
                                           "OMP_PLACES={0:4}:2",
                                           "CFLAGS=-O2 -DKEY=1 -DPASS=2",
                                           "GIT_ASKPASS=/x",
                                           "LS_COLORS=*.tar=01;31:*.key=01",
                                           "OMPI_MCA_btl=self,vader",
                                           "SLURM_JOB_ID=5",
                                           "GIT_AUTHOR_NAME=x",
                                           "KEYBOARD=de",
                                           "FI_BYPASS=1",
                                           "no_proxy=localhost,10.0.0.1",
                                           "MPI_ARGS=--level=2 --map-by=core",
                                           "MAIL=u@h:x",
                                           "GIT_URL=ssh://git@host/x",
                                           "LICENSE=27000@server",
                                           "KMP_AFFINITY=granularity=fine,compact",
                                           "X=desk-lamp-with-a-long-name-and-more",
                                           "PATTERN=x",
                                           ""};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!secret_is_variable(secret[i]))
            fail_msg("%s is taken for harmless", secret[i]);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (secret_is_variable(harmless[i]))
            fail_msg("%s is taken for a secret", harmless[i]);
}

TEST(urls) {
    static const char *const secret[] = {"https://h/x?private_token=S",
                                         "https://h/x.git?a=b;token=s",
                                         "https://user:pw@h/x",
                                         "https://oauth2:glpat-x@h/x.git",
                                         "https://s@h/x",
                                         "ssh://git:pw@h/x"};
    static const char *const harmless[] = {"https://h/x.git", "ssh://git@h/x", "git@h:x.git",
                                           "file:///tmp/a=b", "/srv/git/x",    "https://h/x?path=a@b"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!secret_is_text(secret[i]))
            fail_msg("%s is taken for harmless", secret[i]);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (secret_is_text(harmless[i]))
            fail_msg("%s is taken for a secret", harmless[i]);
}

TEST(files) {
    static const char *const secret[] = {".env",           ".env.local",  ".netrc",      "id_rsa",
                                         "id_ed25519.old", "CERT.PEM",    ".ssh",        ".aws",
                                         ".npmrc",         ".pypirc",     ".pgpass",     ".git-credentials",
                                         ".docker",        "secrets.yml", "credentials", "credentials.json"};
    static const char *const harmless[] = {"env",      "environment.c", "rsa.c",    ".clang-format", "pem.c",
                                           "Makefile", "secret.c",      "deck.key", ".config"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        if (!secret_is_file_name(secret[i]))
            fail_msg("%s is taken for harmless", secret[i]);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (secret_is_file_name(harmless[i]))
            fail_msg("%s is taken for a secret", harmless[i]);
}

TEST(tokens_and_keys_are_found_in_files) {
    static const struct {
        const char *text, *what;
        size_t offset;
    } cases[] = {
        {"a\n" PEM, "a private key", 2},
        {"x=ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3x\n", "a token", 2},
        {"glpat-aB3dE5fG7h_9jK1lM3nO", "a token", 0},
        {"key AKIAIOSFODNN7EXAMPLE.", "a token", 4},
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "a token", 7},
        {"hvs.CAESIJ1a2b3c4d5e6f7g8h9iAbCd", "a token", 0},
        {"xoxb-1234567890-aBcDeFgHiJ", "a token", 0},
        {"glsa_aB3dE5fG7hI9jK1lM3nO5pQ7rS9", "a token", 0},
        {"connect password=hunter22 host=db", "a password", 8},
        {"DB_PASSWD=s3cret9\n", "a password", 0},
        {"https://h/x?password=a1b2c3&y", "a password", 12},
        {"f(password=buffer2, x)", NULL, 0},
        {"password=${PASS1}", NULL, 0},
        {"password = a1b2c3", NULL, 0},
        {"compass=north01 bypass=a1b2c3d4", NULL, 0},
        {"hvs.x", NULL, 0},
        {"-----BEGIN CERTIFICATE-----\nMIIB", NULL, 0},
        {"-----BEGIN PGP SIGNATURE-----", NULL, 0},
        {"sk-learn-is-a-library-of-2007-and-later", NULL, 0},
        {"ghp_ is how tokens of GitHub begin", NULL, 0},
        {"hf_0123456789012345678901234567890123", NULL, 0},
        {"xghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3x", NULL, 0},
        {"", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t offset = 0;
        const char *what = secret_find(cases[i].text, strlen(cases[i].text), &offset);
        if (!what != !cases[i].what ||
            (what && (strcmp(what, cases[i].what) != 0 || offset != cases[i].offset)))
            fail_msg("'%s': found %s at %zu", cases[i].text, what ? what : "nothing", offset);
    }
}
