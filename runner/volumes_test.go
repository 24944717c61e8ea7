package runner

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// put stores an object in the pod's namespace.
func (p *testPod) put(o pod.Object) {
	p.t.Helper()
	put(p.t, p, &o)
}

func put(t testing.TB, p *testPod, o *pod.Object) {
	t.Helper()
	o.Namespace, o.UID, o.Revision = "default", "u", o.Revision+1
	if err := p.dirs().PutObject(o); err != nil {
		t.Fatal(err)
	}
}

// allVolumes returns one volume of every kind, by name; those with a path of the host have it in dir.
func allVolumes(t *testing.T, layer, dir string) map[string]pod.Volume {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "host"), 0o755); err != nil {
		t.Fatal(err)
	}
	return map[string]pod.Volume{
		"emptyDir":  {Kind: pod.EmptyDir},
		"memory":    {Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20},
		"ephemeral": {Kind: pod.Ephemeral},
		"claim":     {Kind: pod.ClaimVolume, Claim: "data"},
		"hostPath":  {Kind: pod.HostPath, Path: filepath.Join(dir, "host"), PathType: "Directory"},
		"configMap": {Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "web", Mode: 0o644}}},
		"secret":    {Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromSecret, Name: "key", Mode: 0o400}}},
		"pod":       {Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "sub/labels", Text: "a=\"b\"", Mode: 0o644}}}}},
		"image":     {Kind: pod.ImageVolume, Layers: []string{layer}},
	}
}

// putObjects stores the objects to which allVolumes refers.
func putObjects(p *testPod) {
	p.put(pod.Object{Kind: pod.KindConfigMap, Name: "web", ConfigMap: &pod.ConfigMap{Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 1}}}})
	p.put(pod.Object{Kind: pod.KindSecret, Name: "key", Secret: &pod.Secret{Data: map[string][]byte{"password": []byte("s3cr3t-of-the-pod")}}})
	p.put(pod.Object{Kind: pod.KindClaim, Name: "data", Claim: &pod.Claim{AccessModes: []string{"ReadWriteOnce"}}})
}

// Every kind of volume, writable and not, as seen by root and by another user, with and without an fsGroup.
func TestVolumes(t *testing.T) {
	l := layer(t)
	dir := t.TempDir()
	all := allVolumes(t, l, dir)
	// It prints what a user sees of a volume: its owner, group and mode, whether it is writable, and
	// whether its files can be read.
	const script = `stat -L -c '%u:%g %a' /v; id -G; if echo x 2>/dev/null >/v/$0; then echo rw; else echo ro; fi; cat /v/a /v/password /v/sub/labels /v/bin/no 2>/dev/null; ls -A /v >/dev/null && echo listed`
	writable := []string{"emptyDir", "memory", "ephemeral", "claim", "hostPath"}
	grouped := []string{"emptyDir", "memory", "ephemeral", "claim", "configMap", "secret", "pod"}
	for _, user := range []string{"0", "1000"} {
		for _, group := range []int{0, 2000} {
			for _, readOnly := range []bool{false, true} {
				t.Run(fmt.Sprintf("user=%s group=%d ro=%t", user, group, readOnly), func(t *testing.T) {
					testenv.NoLeaks(t)
					plan := newPlan(nil, nil)
					if group != 0 {
						plan.FSGroup = &pod.Group{ID: group}
					}
					for name, v := range all {
						v.Name = name
						plan.Volumes = append(plan.Volumes, v)
						c := shell(l, strings.ToLower(name), script)
						c.Args, c.User = append(c.Args, user), user
						if group != 0 {
							c.SupplementalGroups = []uint32{uint32(group)}
						}
						c.Mounts = []pod.Mount{{Volume: name, Path: "/v", ReadOnly: readOnly}}
						plan.Containers = append(plan.Containers, c)
					}
					p := prepare(t, plan)
					putObjects(p)
					p.begin()
					if st := p.ended(); st.Phase != pod.Succeeded {
						t.Fatalf("the pod has %s: %+v", st.Phase, st)
					}
					for name := range all {
						out := strings.Split(strings.TrimSpace(p.log(strings.ToLower(name))), "\n")
						mode := map[string]string{"memory": "1777"}[name]
						access, owner := "ro", "0:0 "+cmp.Or(mode, "777")
						if slices.Contains(writable, name) && !readOnly && (user == "0" || name != "hostPath") {
							access = "rw"
						}
						switch {
						case name == "hostPath" || name == "image":
							owner = "0:0 755"
						case group != 0 && name == "memory":
							owner = fmt.Sprintf("0:%d 3777", group)
						case group != 0 && slices.Contains(grouped, name):
							owner = fmt.Sprintf("0:%d 2777", group)
						}
						if out[0] != owner || out[2] != access || !strings.HasSuffix(out[len(out)-1], "listed") {
							t.Errorf("%s: %q, want %q and %s", name, out, owner, access)
						}
						content := map[string]string{"configMap": "1", "pod": `a="b"`}[name]
						if name == "secret" && (user == "0" || group != 0) {
							content = "s3cr3t-of-the-pod"
						}
						if got := strings.TrimSuffix(strings.Join(out[3:], ""), "listed"); got != content {
							t.Errorf("%s: files have %q, want %q", name, got, content)
						}
					}
				})
			}
		}
	}
}

// manyVolumes is the number of volumes of mixed kinds that must not slow a start down noticeably.
const manyVolumes = 50

// Fifty volumes of mixed kinds all exist. The test logs (-v) what they add to the start of a pod, in time
// and in this process's processor time: at most 20 ms on a quiet machine.
func TestFiftyVolumes(t *testing.T) {
	l := layer(t)
	all := allVolumes(t, l, t.TempDir())
	names := []string{"emptyDir", "memory", "ephemeral", "claim", "hostPath", "configMap", "secret", "pod", "image", "configMap", "secret"}
	began := func(n int) (took, busy time.Duration) {
		plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
		for i := range n {
			v := all[names[i%len(names)]]
			v.Name = fmt.Sprint("v", i)
			plan.Volumes = append(plan.Volumes, v)
			m := pod.Mount{Volume: v.Name, Path: fmt.Sprintf("/v/%d", i), ReadOnly: i%2 == 0}
			if v.Kind == pod.EmptyDir {
				m.SubPath = "part"
			}
			plan.Containers[0].Mounts = append(plan.Containers[0].Mounts, m)
		}
		p := prepare(t, plan)
		putObjects(p)
		moment, used := time.Now(), processorTime(t)
		p.begin()
		p.running()
		took, busy = time.Since(moment), processorTime(t)-used
		if _, got := p.exec("a", "sh", "-c", "grep -c ' /v/' /proc/self/mountinfo"); got != fmt.Sprintln(n) {
			t.Errorf("the container has %q mounts below /v, want %d", got, n)
		}
		p.stop(0)
		return took, busy
	}
	without, busyWithout := began(0)
	with, busyWith := began(manyVolumes)
	t.Logf("%v without, %v with %d volumes; %v and %v of processors", without, with, manyVolumes, busyWithout, busyWith)
}

// processorTime returns the processor time of this process, the supervisor of its pods.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

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
	p.t.Fatalf("the pod is not %s within a minute; events %+v", what, last)
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
		`MountVolume.SetUp failed for volume "host" : hostPath type check failed: ` + filepath.Join(dir, "disk") + ` is not a directory (it does not exist: type DirectoryOrCreate creates it)`,
	}
	held(want...)
	if st := p.engine.completeStatus(pod.Status{}); len(st.Warnings) > 0 {
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
func TestStopWhileVolumeIsMissing(t *testing.T) {
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
	plan.FSGroup = &pod.Group{ID: 2000}
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
	// objectChanged rewrites the files before it returns: the container has the change already.
	_, out := p.exec("a", "/bin/sh", "-c", "cat /v/a /v/c /file; ls /v")
	if out != "231a\nc\n" {
		t.Errorf("the container sees %q", out)
	}
	// Files of a deleted object stay as they were, and an event reports it.
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
	// Secrets are in no file on disk, and not in the Plan.
	noneHas(t, p.place.DataDir(), "s3cr3t-of-the-pod")
}

// noneHas searches the directory itself, not what is mounted in it.
func noneHas(t *testing.T, dir, text string) {
	t.Helper()
	device := func(path string) uint64 {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Dev
	}
	dirDevice := device(dir)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && device(path) != dirDevice {
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

// A container that writes without end to the files that podrun makes for it uses little space, and has its
// original /etc/hosts when it is started again (CVE-2020-8557).
func TestWhatContainersWriteIsBounded(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `exec 2>/dev/null; grep -c other /etc/hosts
for f in /etc/hosts /etc/hostname /etc/resolv.conf /dev/termination-log; do echo other >>$f; dd if=/dev/zero bs=1M count=100 of=$f conv=notrunc oflag=append 2>/dev/null && echo all; done
test -e /v/again && exec sleep 1000; touch /v/again; exit 1`)
	c = withVolume(c, pod.Mount{})
	plan := newPlan(nil, []pod.Container{c})
	plan.RestartPolicy = pod.RestartAlways
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p := start(t, plan)
	p.until("running again", func(st pod.Status) bool {
		return st.Containers[0].RestartCount == 1 && st.Containers[0].State.Running != nil
	})
	if got := p.log("a"); got != "0\n" {
		t.Errorf("the container's log has %q, want no file to take 100 MB", got)
	}
	p.eventuallyLogs("a", 1, "0\n")
	var sum int64
	entries, err := os.ReadDir(filepath.Join(p.place.RuntimeDir(), "sandbox", "etc"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil {
			sum += st.Size()
		}
	}
	const most = 16 << 20
	if sum > most {
		t.Errorf("%d bytes were written, want at most %d", sum, most)
	}
}

// eventuallyLogs waits until an instance has written a text.
func (p *testPod) eventuallyLogs(container string, attempt int, want string) {
	p.t.Helper()
	p.eventually("logged", func([]pod.Event) bool {
		var b strings.Builder
		if _, err := os.Stat(p.place.LogFile(container, attempt)); err != nil {
			return false
		}
		for _, r := range parse(p.t, p.place.LogFile(container, attempt)) {
			b.WriteString(r[2] + "\n")
		}
		return b.String() == want
	})
}

// In an image whose files in /etc are links, the mounts are made where the links lead inside the image, and
// nothing outside is touched (CVE-2024-5154); the same for a volume's mountPath through a link.
func TestMountsOverLinksStayInside(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := filepath.Join(dir, "layer")
	if err := testenv.BusyboxRootfs(l); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 30)
	for name, target := range map[string]string{
		"etc/hosts": canary + "-hosts", "etc/hostname": up + canary[1:], "etc/resolv.conf": "/var/none/resolv.conf", "data": filepath.Join(dir, "vol"), "out": up + dir[1:], "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(l, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := shell(l, "a", "cat /etc/hostname; grep -c localhost /etc/hosts; echo x >/data/in; echo y >/out/sub/in; ls /data")
	c.Mounts = []pod.Mount{{Volume: "v", Path: "/data"}, {Volume: "v", Path: "/out/sub"}}
	plan := newPlan(nil, []pod.Container{c})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p := start(t, plan)
	if st := p.ended(); st.Phase != pod.Succeeded {
		t.Fatalf("%+v: %s", st, p.log("a"))
	}
	if got := p.log("a"); !strings.HasPrefix(got, "p\n2\n") || !strings.Contains(got, "in\n") {
		t.Errorf("log %q", got)
	}
	if b, err := os.ReadFile(canary); err != nil || string(b) != "host" {
		t.Errorf("the canary has %q, %v", b, err)
	}
	for _, name := range []string{"in", "sub", "vol"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made outside", name)
		}
	}

	loop := shell(l, "b", "true")
	loop.Mounts = []pod.Mount{{Volume: "v", Path: "/loop/x"}}
	plan = newPlan(nil, []pod.Container{loop})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p = start(t, plan)
	p.until("refused", func(st pod.Status) bool {
		return st.Phase.Terminal() || st.Containers[0].State.Waiting != nil && st.Containers[0].State.Waiting.Message != ""
	})
}
