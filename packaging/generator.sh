#!/bin/sh
# podrun's generators of systemd (systemd.generator(7)): they make units of files of podman's Quadlet, unless podman's
# own generator is there and not masked.
case ${0##*/} in
podrun-user-generator) exec /usr/bin/podrun systemd generate --user "$@" ;;
*) exec /usr/bin/podrun systemd generate --system "$@" ;;
esac
