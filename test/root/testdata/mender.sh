# Run by root in namespaces of its own: Debian's Mender client with the module of examples/mender. $PODRUN_USER is an
# ordinary user. What the client and podrun write is in directories of the test.
mount --make-rprivate /
mount -t proc proc /proc
ip link set lo up
while read -r _ _ _ _ at _; do
	case $at in /sys/fs/cgroup*) mount -o remount,bind,ro "$at" ;; esac
done </proc/self/mountinfo
cp ../../examples/mender/podrun "$HOME/module"
cd "$HOME" || exit
chmod 711 .
mount -t tmpfs tmpfs /usr/share
mkdir run lib home etc
mount -t tmpfs tmpfs etc
mkdir etc/upper etc/work
mount -t overlay -o lowerdir=/etc,upperdir=etc/upper,workdir=etc/work overlay /etc
user_home=$(getent passwd "$PODRUN_USER" | cut -d : -f 6) uid=$(id -u "$PODRUN_USER")
chown "$PODRUN_USER" home
mount --bind run /run
mount --bind lib /var/lib
mount --bind home "$user_home"
install -d -m 700 -o "$PODRUN_USER" "/run/user/$uid"
install -D module /usr/share/mender/modules/v3/podrun
mkdir -p /etc/mender /var/lib/mender
echo device_type=box >/var/lib/mender/device_type
echo artifact_name=none >/etc/mender/artifact_info
echo '{}' >/etc/mender/mender.conf
store=/var/lib/mender-podrun
trap 'podrun down --all --force; as_user podrun down --all --force' EXIT

die() {
	echo "line ${BASH_LINENO[0]}: $*"
	exit 1
}
as_user() {
	setpriv --reuid "$uid" --regid "$(id -g "$PODRUN_USER")" --init-groups --reset-env env PATH="$PATH" XDG_RUNTIME_DIR="/run/user/$uid" "$@"
}
mender() { "$MENDER/mender" --no-syslog "$@"; }
package() { "$MENDER/mender-artifact" write module-image -T podrun -n "$1" -t box -f "${2:-site.tar}" -o "$1.mender" >/dev/null; }
# artifact NUMBER COMMAND [PROBE]: makes site-NUMBER.mender, a set with a pod whose $V is the number, and with its image.
artifact() {
	local probe=
	[ $# -lt 3 ] || probe=", readinessProbe: {exec: {command: ['$3']}}"
	rm -rf site
	mkdir site
	cp -r images site/
	cat >site/web.yaml <<-Y
		apiVersion: v1
		kind: Pod
		metadata: {name: web}
		spec:
		  terminationGracePeriodSeconds: 0
		  restartPolicy: Never
		  containers:
		  - {name: c, image: "localhost/app:1", command: [sh, -c, "$2"], env: [{name: V, value: "$1"}]$probe}
	Y
	tar -C site -cf site.tar .
	package "site-$1"
}
runs() { # NUMBER: the pod is of this version, and no other file is left
	# shellcheck disable=SC2016 # the container's shell expands it
	[ "$(podrun exec web -- sh -c 'echo $V')" = "$1" ] || die "version $1 does not run"
	grep -q "value: \"$1\"" "$store/site/web.yaml" || die "the manifests are not of version $1"
}
only() { # NAME...: what the module keeps
	[ "$(ls "$store")" = "$*" ] || die "not only $* in $store: $(ls "$store")"
}
name() { [ "$(mender show-artifact 2>/dev/null)" = "$1" ] || die "the client takes it that $(mender show-artifact 2>/dev/null) is installed"; }
fails() { # REGEXP COMMAND...
	if "${@:2}" >failed 2>&1; then die "${*:2} does not fail"; fi
	cat failed
	grep -Eq "$1" failed || die "it lacks $1"
}
interrupted() { # NUMBER: kills the client and podrun in the middle of a change, then does what the client does after a restart
	setsid "$MENDER/mender" --no-syslog install "site-$1.mender" &
	client=$!
	# shellcheck disable=SC2016
	until [ "$(podrun exec web -- sh -c 'echo $V' 2>/dev/null)" = "$1" ]; do
		kill -0 $client || die "the change has ended"
		sleep 0.1
	done
	pkill -9 -s $client
	wait $client || true
	until podrun follow ls | grep -q '^site *Interrupted '; do sleep 0.1; done
	for state in ArtifactRollback ArtifactFailure Cleanup; do
		./module $state /var/lib/mender/modules/v3/payloads/0000/tree
	done
}

podrun image import "$ROOTFS" localhost/app:1
podrun image save --format oci-dir -o images localhost/app:1
podrun image rm localhost/app:1
artifact 1 'exec sleep 1000'
artifact 2 'exec sleep 1000'
artifact bad 'exit 3' false
artifact slow 'exec sleep 1000' false
echo 'options="--stable 0s"' >/etc/mender/podrun.conf

echo "== The first version, interrupted, refused, rolled back: there is no set after it."
interrupted slow
[ -z "$(podrun follow ls 2>/dev/null)$(podrun ps -q)$(ls "$store")" ] || die "something is left"
fails 'container c exited with code 3' mender install site-bad.mender
mender install site-1.mender
runs 1
mender rollback
[ -z "$(podrun follow ls 2>/dev/null)$(podrun ps -q)$(ls "$store")" ] || die "something is left"
name none

echo "== Installed and committed; the next one, rolled back."
mender install site-1.mender
mender commit
name site-1
mender install site-2.mender
runs 2
podrun image prune -a
mender rollback
runs 1
name site-1
only site

echo "== A version that fails, and one that is interrupted: the former one runs on."
fails 'container c exited with code 3.*back at its former version' mender install site-bad.mender
runs 1
name site-1
only site
interrupted slow
runs 1
only site
mender install site-2.mender
mender commit
runs 2
name site-2
only site

echo "== Payloads that would write elsewhere, or are none."
mkdir -p hostile/site
ln -s "$HOME" hostile/site/a
tar -C hostile/site -cf site.tar a
rm hostile/site/a
mkdir hostile/site/a
touch hostile/site/a/evil hostile/site/evil hostile/evil
tar -C hostile/site -rf site.tar a/evil
package link
fails 'neither files nor directories' mender install link.mender
ln "$HOME/images/index.json" hostile/site/index
ln hostile/site/index hostile/site/index2
tar -C hostile/site -cf site.tar index index2
package hardlink
fails 'neither files nor directories' mender install hardlink.mender
tar -P -C hostile/site -cf site.tar ../evil
package above
fails 'Installation failed' mender install above.mender
echo text >text
for file in text .tar a.b.tar A.tar; do
	[ -e "$file" ] || cp site.tar "$file"
	package odd "$file"
	fails 'the payload must be one file' mender install odd.mender
done
[ -z "$(find / -xdev -name evil ! -path "$HOME/hostile/*" 2>/dev/null)" ] || die "evil was written"
runs 2
name site-2
only site
podrun follow rm site

echo "== For an ordinary user."
rm -r $store
echo "user=$PODRUN_USER" >>/etc/mender/podrun.conf
mender install site-1.mender
mender commit
mender install site-2.mender
[ "$(podrun follow ls 2>/dev/null)" = "" ] || die "it is root's"
# shellcheck disable=SC2016
[ "$(as_user podrun exec web -- sh -c 'echo $V')" = 2 ] || die "version 2 does not run"
mender rollback
# shellcheck disable=SC2016
[ "$(as_user podrun exec web -- sh -c 'echo $V')" = 1 ] || die "version 1 does not run"
owners=$(stat -c '%U %a' $store/site; stat -c %U $store $store/site/web.yaml)
[ "$owners" = "$PODRUN_USER 700"$'\n'root$'\n'"$PODRUN_USER" ] || die "the files are another's: $owners"
as_user podrun follow rm site
