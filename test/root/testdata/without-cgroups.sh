# Run by root in namespaces of its own: podrun as in a container, with read-only cgroups.
# Containers try to make a device file of the kernel's, and to read one that another process has
# made.
mount --make-rprivate /
mount -t proc proc /proc
ip link set lo up
while read -r _ _ _ _ at _; do
	case $at in /sys/fs/cgroup*) mount -o remount,bind,ro "$at" ;; esac
done </proc/self/mountinfo
mkdir "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
podrun image import "$ROOTFS" busybox
podrun up -d --timeout 5m testdata/pod.yaml
trap 'podrun down devices' EXIT
places=(/ /tmp /etc /dev /dev/shm /empty /memory)
# shellcheck disable=SC2016 # the container's shell expands it
for container in plain asking; do
	podrun exec devices -c $container -- sh -c '
		for at; do
			mknod $at/evil c 1 5 2>/dev/null && echo "$0: made $at/evil"
		done
		head -c 4 /dev/zero >/dev/null && echo "$0: end"
	' $container "${places[@]}"
done
pid=$(pgrep -o -x -f 'sleep 1001')
for at in "${places[@]}"; do mknod "/proc/$pid/root$at/evil" c 1 5; done
# shellcheck disable=SC2016
podrun exec devices -c plain -- sh -c '
	for at; do
		test -c $at/evil && echo "there is $at/evil"
		head -c 4 $at/evil >/dev/null 2>&1 && echo "read $at/evil"
	done
	true
' plain "${places[@]}"
