#!/bin/sh
# Runs after the removal of a package. The data of users stays.
set -e

case ${1-} in
upgrade | failed-upgrade | abort-* | disappear | [1-9]*) exit 0 ;; # the new version stays; rpm counts the versions that stay
esac
if [ -e /etc/apparmor.d/podrun ] && [ ! -e /usr/share/podrun/apparmor.profile ]; then
	if [ -e /sys/kernel/security/apparmor/profiles ]; then apparmor_parser -R /etc/apparmor.d/podrun 2>/dev/null || :; fi
	rm -f /etc/apparmor.d/podrun
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi
