#!/bin/bash
# Installs the Debian packages of the lists given that are not installed yet; says what it does, and does nothing when
# nothing is missing. As root, or through sudo.
#
#   install-packages.sh LIST...
set -u
[ $# -gt 0 ] || { echo "usage: install-packages.sh LIST..." >&2; exit 2; }

mapfile -t wanted < <(sed 's/#.*//' "$@" | tr -s '[:space:]' '\n' | grep .)
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install-packages: this is not Debian; its names for what is needed are: ${wanted[*]}" >&2
    exit 0 # the build says what it does not find
fi

missing=()
for package in "${wanted[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-packages: missing, and neither root nor sudo is here to install them: ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "install-packages: installing ${missing[*]}" >&2

# An sshd that comes as a part of something else is not to serve this machine, now or after the next boot: Debian's
# own switch. sshd is still there for whoever runs it.
case " ${missing[*]} " in
*" openssh-server "*)
    echo "install-packages: sshd is not started as a service (/etc/ssh/sshd_not_to_be_run)" >&2
    "${as_root[@]}" sh -c 'mkdir -p /etc/ssh && : >/etc/ssh/sshd_not_to_be_run' || exit 1 ;;
esac

# `env`, because sudo drops the environment. The lock is often held by a fresh system's own upgrade: it is waited for.
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >&2; }
install() { apt install --no-install-recommends "${missing[@]}"; }

# A fresh system has no package lists; an old one may have lists of packages that are gone.
if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1; then
    apt update && install || exit 1
else
    install || { apt update && install; } || exit 1
fi

# Nor are these, which the tests run themselves.
for service in apache2 postgresql oar-server oar-node; do
    case " ${missing[*]} " in
    *" $service "*)
        echo "install-packages: $service is not started as a service" >&2
        # shellcheck disable=SC2016 # the shell's own
        "${as_root[@]}" sh -c 'systemctl disable --now "$0" || { service "$0" stop; update-rc.d "$0" disable; }' $service >/dev/null 2>&1 ;;
    esac
done
exit 0
