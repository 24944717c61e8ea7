package store

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// logBed is a host with logs of containers.
type logBed struct {
	Dirs
	t *testing.T
}

// create creates a pod.
func (b *logBed) create(name string, cluster *pod.Cluster) Pod {
	b.t.Helper()
	p := b.Pod("default", name)
	if err := p.Create(&pod.Plan{Namespace: "default", Name: name, UID: "uid-1", Cluster: cluster}, nil); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// write writes the name of a pod to one of its logs.
func (b *logBed) write(p Pod, container string, attempt int) {
	b.t.Helper()
	file := p.LogFile(container, attempt)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(p.Name), 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

// links links the logs of pods, and returns the files to which all links lead.
func (b *logBed) links(pods ...Pod) (files []string) {
	b.t.Helper()
	for _, p := range pods {
		if err := p.LinkLogs(); err != nil {
			b.t.Fatal(err)
		}
	}
	all, err := os.ReadDir(b.containerLogs())
	if err != nil {
		b.t.Fatal(err)
	}
	name := regexp.MustCompile(`^([a-z0-9.-]+)_default_(.+)-[0-9a-f]{64}\.log$`)
	for _, e := range all {
		target, err := os.Readlink(filepath.Join(b.containerLogs(), e.Name()))
		parts := name.FindStringSubmatch(e.Name())
		if err != nil || parts == nil {
			b.t.Fatalf("%s: %v", e.Name(), err)
		}
		inside, _ := strings.CutPrefix(target, "/var/log/pods/")
		text, err := os.ReadFile(filepath.Join(b.podLogs(), inside))
		if err != nil || string(text) != parts[1] || filepath.Base(filepath.Dir(inside)) != parts[2] {
			b.t.Errorf("%s leads to %s: %q, %v", e.Name(), target, text, err)
		}
		files = append(files, inside)
	}
	slices.Sort(files)
	return files
}

// TestClusterLogs: the logs of a cluster's pod are found by the kubelet's names as long as the pod has them; other pods
// have none there.
func TestClusterLogs(t *testing.T) {
	b := &logBed{Dirs{Data: t.TempDir(), Runtime: t.TempDir()}, t}
	if err := b.MakeClusterLogDir(); err != nil {
		t.Fatal(err)
	}
	ofCluster := &pod.Cluster{Domain: "cluster.local"}
	check := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("links to %q, not %q", got, want)
		}
	}
	web, other, own := b.create("web", ofCluster), b.create("web.2", ofCluster), b.create("own", nil)
	long := b.create(strings.Repeat("a", 200), ofCluster)
	b.write(web, "main", 0)
	b.write(web, "side-1", 0)
	b.write(other, "main", 4)
	b.write(own, "main", 0)
	b.write(long, "main", 0)
	check(b.links(web, other, own, long), "default_web.2_uid-1/main/4.log", "default_web_uid-1/main/0.log", "default_web_uid-1/side-1/0.log")

	for n := 1; n <= 2; n++ { // a restart: the log before the last one goes
		b.write(web, "main", n)
	}
	if err := os.Remove(web.LogFile("main", 0)); err != nil {
		t.Fatal(err)
	}
	b.create("web", ofCluster) // it is resumed
	check(b.links(web), "default_web.2_uid-1/main/4.log", "default_web_uid-1/main/1.log", "default_web_uid-1/main/2.log", "default_web_uid-1/side-1/0.log")

	if err := web.Remove(); err != nil {
		t.Fatal(err)
	}
	check(b.links(), "default_web.2_uid-1/main/4.log")
	check(b.links(web), "default_web.2_uid-1/main/4.log")
	if err := other.RemoveSelf(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Pod{own, long} {
		if err := p.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	check(b.links(other))
	if left, err := os.ReadDir(b.podLogs()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestForeignLogLink: a link that leads elsewhere is removed, not what it leads to.
func TestForeignLogLink(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	p := d.Pod("default", "web")
	if err := p.Create(&pod.Plan{Namespace: "default", Name: "web"}, nil); err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	if err := os.Symlink(kept, filepath.Join(p.DataDir(), "logs")); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil || p.HasRemains() {
		t.Errorf("%v; has remains: %t", err, p.HasRemains())
	}
}
