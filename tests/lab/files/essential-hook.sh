#!/bin/sh
set -e
echo 'rabbitmq:x:999:' >> "$1/etc/group"
echo 'rabbitmq:!::' >> "$1/etc/gshadow"
echo 'rabbitmq:x:999:999:RabbitMQ messaging server:/var/lib/rabbitmq:/usr/sbin/nologin' >> "$1/etc/passwd"
echo 'rabbitmq:!:19000::::::' >> "$1/etc/shadow"
