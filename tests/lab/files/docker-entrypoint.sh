#!/bin/sh
# As root: hand the data over to the broker's user and become it. As that user: just start.
set -e
case "$1" in
  rabbitmq*)
    if [ "$(id -u)" = 0 ]; then
      find /var/lib/rabbitmq ! -user rabbitmq -exec chown rabbitmq:rabbitmq {} +
      exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "$0" "$@"
    fi ;;
esac
exec "$@"
