package vm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// cutsSetup, run by root, makes a registry that starts with the machine.
const cutsSetup = `set -e
cat >/etc/registry.yml <<Y
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: /srv/registry}}
http: {addr: "127.0.0.1:5100"}
Y
cat >/etc/systemd/system/registry.service <<Y
[Service]
Environment=OTEL_TRACES_EXPORTER=none
ExecStart=/usr/bin/docker-registry serve /etc/registry.yml
[Install]
WantedBy=multi-user.target
Y
systemctl -q daemon-reload
systemctl -q enable --now registry.service
modprobe loop
truncate -s 128M /var/store.img
mkfs.ext4 -q -m 0 -O ^metadata_csum /var/store.img # its superblock has two sectors: torn, it would need fsck
mkdir -p /mnt/store /var/cuts
mount -o loop /var/store.img /mnt/store
chown dev /mnt/store
umount /mnt/store`

// storeOn returns a script for root that gives podrun its own disk, a target of device-mapper on $disk.
func storeOn(target string) string {
	return `set -e
modprobe -a loop dm-mod dm-log-writes
disk=$(losetup -f --show /var/store.img)
dmsetup create --noudevsync --noudevrules --table "0 $(blockdev --getsz $disk) ` + target + `" store
mount "/dev/$(dmsetup info -c --noheadings -o blkdevname store)" /mnt/store`
}

// cutsStore is a disk whose writes can be stopped.
var cutsStore = storeOn("linear $disk 0")

// cutsCopies, run by root, copies that disk at the given times, SECONDS... apart, as a power cut
// would leave it: it does not flush pending writes first. During a copy writes to the disk are
// blocked.
const cutsCopies = `set -e
i=0
for apart; do
	i=$((i + 1))
	sleep $apart
	dmsetup suspend --nolockfs store
	cp --sparse=always /var/store.img /var/cuts/$i.img
	dmsetup resume --noudevsync store
done
sync`

// cutsImages, run by dev, makes three images of many files each, in the registry, and one in an
// archive. Each contains its name, and checksums of its files.
const cutsImages = `set -e
cd; mkdir -p .config/containers
printf '[[registry]]\nlocation = "127.0.0.1:5100"\ninsecure = true\n' >.config/containers/registries.conf
export PATH=$PATH:$HOME/podrun/bin
bash podrun/scripts/example-rootfs base.tar
for i in a b c d; do
	mkdir -p tree/many
	for n in $(seq 80); do head -c $((n * 300)) /dev/urandom >tree/many/$n; done
	(cd tree && sha256sum many/* >sums)
	echo $i >tree/name
	cp base.tar $i.tar
	tar --append -f $i.tar --owner=0 --group=0 -C tree many name sums
	rm -r tree
	podrun image import $i.tar 127.0.0.1:5100/$i:1
	podrun image save -o $i.oci 127.0.0.1:5100/$i:1
	podrun image rm 127.0.0.1:5100/$i:1
	[ $i = d ] || until skopeo copy -q --dest-tls-verify=false oci-archive:$i.oci docker://127.0.0.1:5100/$i:1; do sleep 1; done
	rm $i.tar
done`

const cutsPod = `apiVersion: v1
kind: Pod
metadata: {name: cuts}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: b, image: "127.0.0.1:5100/b:1", command: [sleep, infinity]}
  - {name: c, image: "127.0.0.1:5100/c:1", command: [sleep, infinity]}
  - {name: d, image: "127.0.0.1:5100/d:1", imagePullPolicy: IfNotPresent, command: [sleep, infinity]}
`

// cutsWork pulls, loads and runs repeatedly; cutsCheck prints errors after a cut; cutsRedo does the
// same work to its end, without the pod; cutsPods has the pod; cutsClear removes everything.
const (
	cutsEnv   = `export PATH=$PATH:$HOME/podrun/bin XDG_DATA_HOME=/mnt/store; `
	cutsOnce  = `podrun image pull 127.0.0.1:5100/a:1; podrun image load d.oci; podrun up -d cuts.yaml; `
	cutsWork  = cutsEnv + `while :; do ` + cutsOnce + `podrun down cuts; podrun image prune -a; done`
	cutsCheck = cutsEnv + `set -e
sums() { for f in $XDG_DATA_HOME/podrun/images/layers/*/fs/sums; do [ ! -e $f ] || (cd ${f%/*} && sha256sum --quiet -c sums); done; }
podrun image ls
podrun image verify
sums
`
	cutsRedo = cutsCheck + `until bash -c ': </dev/tcp/127.0.0.1/5100' 2>/dev/null; do sleep 0.2; done
podrun image pull 127.0.0.1:5100/a:1 127.0.0.1:5100/b:1 127.0.0.1:5100/c:1
podrun image load d.oci
podrun image verify
sums
`
	cutsPods = cutsRedo + `podrun up -d --timeout 150s cuts.yaml
for c in b c d; do podrun exec cuts -c $c -- sh -c 'cd / && sha256sum -c sums >/tmp/output || { cat /tmp/output; exit 1; }'; done`
	cutsClear = cutsEnv + `podrun down cuts
podrun image prune -a
ls -A $XDG_DATA_HOME/podrun/images/layers $XDG_DATA_HOME/podrun/images/staging $XDG_DATA_HOME/podrun/images/retired`
)

// cutsPerBoot returns how often the disk is copied before a power cut.
func cutsPerBoot() int {
	if torture() {
		return 20
	}
	return 8
}

// TestImagePowerCuts cuts the power at random moments of a pull, of a load and of up, while layers
// are fetched, unpacked and made durable. Whatever is listed afterwards is complete, and the same
// commands succeed again without manual cleanup. In each round the disk is copied at many moments,
// then the power is cut; the next boot mounts and checks each copy, and the disk itself. Every
// fourth copy, and the disk, get all of the work again, which takes most of a round.
func TestImagePowerCuts(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	sh := func(script string) string { return m.must(t, "session", "sh", "-c", script) }
	root := func(script string, words ...string) {
		m.must(t, "root", append([]string{"sh", "-c", script, "sh"}, words...)...)
	}
	root(cutsSetup)
	sh("printf %s " + quote(cutsPod) + " >cuts.yaml")
	sh(cutsImages)
	root(cutsStore)
	cuts := cutsPerBoot()
	start := time.Now()
	sh(cutsEnv + cutsOnce)
	took := time.Since(start)
	sh(cutsPods)
	sh(cutsClear)
	root("sync")
	for round := range rounds(t, 1) {
		work := m.command("session", "sh", "-c", cutsWork)
		if err := work.Start(); err != nil {
			t.Fatal(err)
		}
		var intervals []string
		for range cuts {
			intervals = append(intervals, fmt.Sprintf("%.2f", took.Seconds()/4*rand.Float64()))
		}
		root(cutsCopies, intervals...)
		m.cut(t)
		work.Wait()
		for i := range cuts {
			root("mount -o loop /var/cuts/$1.img /mnt/store", fmt.Sprint(i+1))
			check := cutsCheck
			if i%4 == 3 {
				check = cutsRedo
			}
			if output, err := m.command("session", "sh", "-c", check).CombinedOutput(); err != nil {
				t.Fatalf("round %d, cut %d of %v s apart: %v\n%s", round+1, i+1, intervals, err, output)
			}
			root("umount /mnt/store && rm /var/cuts/$1.img", fmt.Sprint(i+1))
		}
		root(cutsStore)
		if output, err := m.command("session", "sh", "-c", cutsPods).CombinedOutput(); err != nil {
			t.Fatalf("round %d, after the plug was pulled: %v\n%s", round+1, err, output)
		}
		if left := sh(cutsClear); strings.Contains(left, "layer-") {
			t.Errorf("round %d: left behind: %s", round+1, left)
		}
		t.Logf("round %d: %d cuts in %.1f s of work each", round+1, cuts+1, took.Seconds())
	}
}
