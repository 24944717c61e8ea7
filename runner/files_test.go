package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// eventually waits for events that satisfy ok.
func (p *testPod) eventually(what string, ok func([]pod.Event) bool) {
	p.t.Helper()
	var last []pod.Event
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		last, _ = p.place.Events() // there may be none yet
		if ok(last) {
			return
		}
	}
	p.t.Fatalf("the pod is not %s within two minutes; events %+v", what, last)
}

func TestMissingReferencesHoldThePod(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	plan := newPlan(nil, []pod.Container{shell(l, "a", "cat /c/* /v/here; exec sleep 1000")})
	plan.Containers[0].Mounts = []pod.Mount{{Volume: "cfg", Path: "/c"}, {Volume: "host", Path: "/v"}}
	plan.Volumes = []pod.Volume{
		{Name: "cfg", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "web", Mode: 0o644, Items: []pod.FileItem{{Key: "a", Path: "a", Mode: 0o644}}}}},
		{Name: "key", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromSecret, Name: "key"}}},
		{Name: "data", Kind: pod.ClaimVolume, Claim: "data"},
		{Name: "host", Kind: pod.HostPath, Path: filepath.Join(dir, "disk"), PathType: "Directory"},
		{Name: "maybe", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromSecret, Name: "none", Optional: true}}},
		{Name: "mem", Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20},
	}
	p := prepare(t, plan)
	p.begin()
	held := func(want ...string) {
		t.Helper()
		p.eventually("held", func(log []pod.Event) bool {
			var have []string
			for _, e := range log {
				if e.Reason == "FailedMount" {
					have = append(have, e.Message)
				}
			}
			slices.Sort(have)
			slices.Sort(want)
			return slices.Equal(have, want)
		})
	}
	want := []string{
		`MountVolume.SetUp failed for volume "cfg" : configmap "web" not found`,
		`MountVolume.SetUp failed for volume "key" : secret "key" not found`,
		`MountVolume.SetUp failed for volume "data" : persistentvolumeclaim "data" not found`,
		`MountVolume.SetUp failed for volume "host" : hostPath type check failed: ` + filepath.Join(dir, "disk") + ` is not a directory (there is nothing: type DirectoryOrCreate makes it)`,
	}
	held(want...)
	if st := p.engine.annotate(pod.Status{}); len(st.Warnings) > 0 {
		t.Errorf("warnings %v", st.Warnings)
	}
	putObjects(p)
	p.put(pod.Object{Kind: pod.KindConfigMap, Name: "web", ConfigMap: &pod.ConfigMap{Data: map[string]string{"b": "1"}}})
	p.poke()
	held(append(want, `MountVolume.SetUp failed for volume "cfg" : configmap references non-existent config key: a`)...)
	if err := os.MkdirAll(filepath.Join(dir, "disk", "here"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.put(pod.Object{Kind: pod.KindConfigMap, Name: "web", ConfigMap: &pod.ConfigMap{Data: map[string]string{"a": "found\n"}}})
	p.poke()
	p.running()
	if code, out := p.exec("a", "/bin/cat", "/c/a"); code != 0 || out != "found\n" {
		t.Errorf("exit %d, %q", code, out)
	}
}

// A pod that waits for a volume can be stopped, and leaves nothing.
func TestAHeldPodIsStopped(t *testing.T) {
	testenv.NoLeaks(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	plan.Volumes = []pod.Volume{
		{Name: "mem", Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20}, {Name: "img", Kind: pod.ImageVolume, Layers: plan.Containers[0].Layers},
		{Name: "key", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromSecret, Name: "key"}}},
	}
	p := start(t, plan)
	p.until("waiting", func(st pod.Status) bool { return st.Phase == pod.Pending })
	if st := p.stop(0); st.Phase != pod.Failed {
		t.Errorf("phase %s", st.Phase)
	}
}

func TestFilesChangeWhileThePodRuns(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
	plan.Group = &pod.Group{ID: 2000}
	plan.Containers[0].Mounts = []pod.Mount{{Volume: "v", Path: "/v"}, {Volume: "v", Path: "/file", SubPath: "a"}, {Volume: "s", Path: "/s"}}
	plan.Volumes = []pod.Volume{
		{Name: "v", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "web", Mode: 0o644}}},
		{Name: "s", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromSecret, Name: "key", Mode: 0o400}}},
	}
	p := prepare(t, plan)
	putObjects(p)
	p.begin()
	p.running()
	p.put(pod.Object{Kind: pod.KindConfigMap, Name: "web", ConfigMap: &pod.ConfigMap{Data: map[string]string{"a": "2", "c": "3"}}})
	p.poke()
	// Who applies it waits for the container to have it: what is left is the machine's speed.
	_, out := p.exec("a", "/bin/sh", "-c", "cat /v/a /v/c /file; ls /v")
	if out != "231a\nc\n" {
		t.Errorf("the container sees %q", out)
	}
	// What is deleted stays as it was, and is told.
	if err := p.dirs().DeleteObject(pod.KindSecret, "default", "key"); err != nil {
		t.Fatal(err)
	}
	p.poke()
	p.eventually("told", func(log []pod.Event) bool {
		return slices.ContainsFunc(log, func(e pod.Event) bool {
			return e.Reason == "FailedMount" && strings.Contains(e.Message, `secret "key" not found`)
		})
	})
	if _, out := p.exec("a", "/bin/cat", "/s/password"); out != "s3cr3t-of-the-pod" {
		t.Errorf("the secret has %q", out)
	}
	// Secrets are in no file on disk, and not in the plan.
	noneHas(t, p.place.DataDir(), "s3cr3t-of-the-pod")
}

// noneHas looks at what is in the directory itself, and not at what is mounted in it.
func noneHas(t *testing.T, dir, text string) {
	t.Helper()
	device := func(path string) uint64 {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Dev
	}
	own := device(dir)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && device(path) != own {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), text) {
			t.Errorf("%s has %q", path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
