package vm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// cutsSetup, run by root, makes a registry that is there whenever the machine is.
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
systemctl -q enable --now registry.service`

// cutsImages, run by dev, makes three images of many files each, in the registry, and one in
// an archive. Each holds the sums of its files.
const cutsImages = `set -e
cd; mkdir -p .config/containers
printf '[[registry]]\nlocation = "127.0.0.1:5100"\ninsecure = true\n' >.config/containers/registries.conf
export PATH=$PATH:$HOME/podrun/bin
bash podrun/scripts/example-rootfs base.tar
for i in a b c d; do
	mkdir -p tree/many
	for n in $(seq 80); do head -c $((n * 300)) /dev/urandom >tree/many/$n; done
	(cd tree && sha256sum many/* >sums)
	cp base.tar $i.tar
	tar --append -f $i.tar --owner=0 --group=0 -C tree many sums
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

// cutsWork pulls, loads and runs; cutsCheck says what is wrong after a cut, and does it
// again, to its end; cutsClear takes everything away.
const (
	cutsWork  = `export PATH=$PATH:$HOME/podrun/bin; podrun image pull 127.0.0.1:5100/a:1; podrun image load d.oci; podrun up -d cuts.yaml`
	cutsCheck = `set -e
export PATH=$PATH:$HOME/podrun/bin
podrun image ls
podrun image verify
until bash -c ': </dev/tcp/127.0.0.1/5100' 2>/dev/null; do sleep 0.2; done
podrun image pull 127.0.0.1:5100/a:1 127.0.0.1:5100/b:1 127.0.0.1:5100/c:1
podrun image load d.oci
podrun up -d --timeout 150s cuts.yaml
podrun image verify
for c in b c d; do podrun exec cuts -c $c -- sh -c 'cd / && sha256sum -c sums >/tmp/said || { cat /tmp/said; exit 1; }'; done`
	cutsClear = `export PATH=$PATH:$HOME/podrun/bin
podrun down cuts
podrun image prune -a
ls -A $HOME/.local/share/podrun/images/layers $HOME/.local/share/podrun/images/staging $HOME/.local/share/podrun/images/retired`
)

// TestImagePowerCuts: the power is cut at random moments of a pull, of a load and of up, while
// layers come in, are unpacked and made durable. Whatever is listed after that is whole, and
// the same commands do all of it again: nothing has to be cleared by hand.
func TestImagePowerCuts(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	sh := func(script string) string { return m.must(t, "session", "sh", "-c", script) }
	m.must(t, "root", "sh", "-c", cutsSetup)
	sh("printf %s " + quote(cutsPod) + " >cuts.yaml")
	sh(cutsImages)
	start := time.Now()
	sh(cutsWork)
	took := time.Since(start)
	sh(cutsCheck)
	sh(cutsClear)
	m.must(t, "root", "sync")
	for i := range rounds(t, 5) {
		work := m.command("session", "sh", "-c", cutsWork)
		if err := work.Start(); err != nil {
			t.Fatal(err)
		}
		moment := took.Seconds() * rand.Float64()
		m.must(t, "session", "sleep", fmt.Sprintf("%.2f", moment))
		m.cut(t)
		work.Wait()
		said, err := m.command("session", "sh", "-c", cutsCheck).CombinedOutput()
		if err != nil {
			t.Fatalf("cut %d, after %.1f of %.1f s: %v\n%s", i+1, moment, took.Seconds(), err, said)
		}
		if left := sh(cutsClear); strings.Contains(left, "layer-") {
			t.Errorf("cut %d: left behind: %s", i+1, left)
		}
		t.Logf("cut %d, after %.1f of %.1f s", i+1, moment, took.Seconds())
	}
}
