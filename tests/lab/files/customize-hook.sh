#!/bin/sh
# $1: root of the image; LAB_VERSION: the version that must be in it; LAB_ENTRYPOINT: the start script.
set -e
found=$(chroot "$1" dpkg-query -W -f '${Version}' rabbitmq-server)
case "$found" in
  "$LAB_VERSION"-*) ;;
  *) echo "the suite has rabbitmq-server $found, wanted $LAB_VERSION" >&2; exit 1 ;;
esac
[ "$(chroot "$1" id -u rabbitmq)" = 999 ]
install -m 0755 "$LAB_ENTRYPOINT" "$1/usr/local/bin/docker-entrypoint.sh"
# The package's cookie would be the same secret in every cluster made from this image.
rm -rf "$1/var/lib/rabbitmq/.erlang.cookie" "$1/var/lib/rabbitmq/mnesia" "$1/var/log/rabbitmq"
install -d -m 1777 -o 999 -g 999 "$1/var/lib/rabbitmq" "$1/var/lib/rabbitmq/mnesia" "$1/var/log/rabbitmq"
chown -R 999:999 "$1/etc/rabbitmq"
rm -rf "$1/var/cache/apt" "$1/var/lib/apt/lists" "$1/usr/share/doc" "$1/usr/share/man" "$1/usr/share/info" \
  "$1/usr/share/locale" "$1/usr/share/lintian" "$1/var/log/apt" "$1/var/log/dpkg.log"
