package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A pod with users of its own has no id of the user's other pods; its image, its volumes and
// what podrun makes for it are its own nevertheless, and it goes on after its supervisor.
func TestUsersOfItsOwn(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := os.WriteFile(l+"/set", []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(l+"/set", 0o4755); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(l + "/etc"); err != nil { // an image from scratch has none
		t.Fatal(err)
	}
	const look = "touch /etc/made /new/made /made /v/new /m/made && chown 7:8 /v/new && mv /v/new /v/made; exec sleep 1000"
	a, b := shell(l, "a", look), shell(l, "b", "id; touch /v/b; exec sleep 1000")
	b.User, b.SupplementalGroups = "1000:1001", []uint32{2000}
	a.TerminationMessagePath = "/dev/termination-log"
	mounts := []pod.Mount{{Volume: "v", Path: "/v"}, {Volume: "m", Path: "/m"}, {Volume: "f", Path: "/f"}, {Volume: "g", Path: "/g"}}
	a.Mounts, b.Mounts = append([]pod.Mount{{Volume: "m", Path: "/new/deep"}}, mounts...), mounts
	plan := newPlan(nil, []pod.Container{a, b})
	plan.Apart, plan.Users = true, &pod.IDRange{First: 40960, Count: 4096}
	plan.Group = &pod.Group{ID: 2000}
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}, {Name: "m", Kind: pod.EmptyDirMemory}, {Name: "f", Kind: pod.Files,
		Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "key", Text: "word", Mode: 0o400}}}}},
		{Name: "g", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "key", Text: "word", Mode: 0o644}}}}}}
	w := startWhole(t, plan)
	w.until(running)
	if code, out := w.ask("b", "/bin/sh", "-c", "until test -e /v/made; do usleep 10000; done; id -u; id -g; id -G; touch /made 2>/dev/null || echo not root"); code != 0 || strings.Join(strings.Fields(out), " ") != "1000 1001 1001 2000 not root" {
		t.Errorf("as another user: %d, %s", code, out)
	}
	_, out := w.ask("a", "/bin/sh", "-c", "cat /proc/self/uid_map | tr -s ' '; stat -L -c '%n %u:%g %a' / /etc /etc/hosts /etc/hostname /etc/resolv.conf /new /set /bin/sh /v /m /f /f/key /g/key /dev /dev/termination-log; stat -c '%N %u:%g' /g/key /g/..data; cat /f/key; stat -c ' %u %g' /v/made")
	for _, want := range []string{" 0 40960 4096\n", "/ 0:0 755\n", "/etc 0:0 755\n", "/etc/hosts 0:0 644\n", "/etc/hostname 0:0 644\n", "/etc/resolv.conf 0:0 644\n",
		"/new 0:0 755\n", "/set 0:0 4755\n", "/bin/sh 0:0 ", "/v 0:2000 2777\n", "/m 0:2000 3777\n", "/f 0:2000 2777\n", "/f/key 0:2000 440\n",
		"/g/key 0:2000 644\n", "'/g/key' -> '..data/key' 0:0\n", "/dev 0:0 755\n", "/dev/termination-log 0:0 666\n", "word", " 7 8\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %s", want, out)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(w.place.VolumesDir(), "v", "made"), &st); err != nil || st.Uid != 40960+7 || st.Gid != 40960+8 {
		t.Errorf("outside its file belongs to %d and %d: %v", st.Uid, st.Gid, err)
	}
	supervisor, _ := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, out := w.ask("a", "/bin/sh", "-c", "ip addr add 10.99.99.99/32 dev lo; nc -l -p 80 -w 1 -e true; echo x >/proc/sys/kernel/core_pattern || id -u"); strings.TrimSpace(lastLine(out)) != "0" {
		t.Errorf("after its supervisor: %d, %s", code, out)
	}
}

// An image with more ids than the pod has is refused with the file and the cure.
func TestTooFewUsersOfItsOwn(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := os.Lchown(l+"/bin/busybox", 5000, 0); err != nil {
		t.Fatal(err)
	}
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
	plan.Apart, plan.Users = true, &pod.IDRange{First: 40960, Count: 4096}
	w := startWhole(t, plan)
	w.until(func(st *pod.Status) bool {
		waiting := st.Containers[0].State.Waiting
		return waiting != nil && strings.Contains(waiting.Message, "belongs to the id 5000, and the pod has only 4096") && strings.Contains(waiting.Message, "/etc/subuid")
	})
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// A user of the image's whom no pod of the user has is refused with the cure.
func TestUserOutsideOfTheMap(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := os.WriteFile(l+"/etc/passwd", []byte("far:x:1000000:0::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := shell(l, "a", "exec sleep 1000")
	c.User = "far"
	w := startWhole(t, newPlan(nil, []pod.Container{c}))
	w.until(func(st *pod.Status) bool {
		waiting := st.Containers[0].State.Waiting
		return waiting != nil && waiting.Reason == "CreateContainerConfigError" && strings.Contains(waiting.Message, "user 1000000 is not among the ids of this pod: give its user more of them in /etc/subuid")
	})
}
