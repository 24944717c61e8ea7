#!/bin/sh
# Runs after the installation or an upgrade of a package. Nothing here changes the account of a user.
set -e

# Where AppArmor restricts user namespaces (Ubuntu since 23.10), podrun needs a profile. Older parsers do not
# know the rule in it.
profile=/usr/share/podrun/apparmor.profile
if [ -e $profile ] && [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ] && [ -e /etc/apparmor.d/abi/4.0 ]; then
	echo "podrun: /etc/apparmor.d/podrun lets podrun make user namespaces"
	cp $profile /etc/apparmor.d/podrun
	apparmor_parser -r /etc/apparmor.d/podrun || echo "podrun: the profile could not be loaded; podrun doctor shows whether pods can run"
fi
if [ -d /run/systemd/system ]; then
	echo "podrun: /usr/lib/systemd/system/user@.service.d/60-podrun.conf delegates cpuset and io to users, from their next login"
	systemctl daemon-reload || :
fi
if [ ! -e /dev/net/tun ]; then modprobe tun 2>/dev/null || :; fi
echo "podrun: now run, as an ordinary user: podrun doctor"
