/* Prints the names of a platform's hosts, a line each, in the order in which SimGrid's own parser makes them: that of the file.
 *
 *     platform-hosts --log=root.thresh:warning PLATFORM.xml
 */
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>

int main(int argc, char **argv) {
    simgrid::s4u::Engine engine(&argc, argv);
    SMPI_init(); /* declares smpi/os, ois and or, which a platform may set */
    simgrid::s4u::Host::on_creation_cb(
        [](const simgrid::s4u::Host &host) { std::puts(host.get_cname()); });
    engine.load_platform(argv[1]);
    return 0;
}
