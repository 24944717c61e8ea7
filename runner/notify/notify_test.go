package notify

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/handoff"
)

// postedNotifier returns a Notifier with a target, and the test's ends of its socket and its output.
func postedNotifier(t *testing.T, plan *pod.Plan, label string, kind int) (h *Notifier, socket, output *os.File) {
	t.Helper()
	var ours, theirs []*os.File
	for _, k := range []int{unix.SOCK_SEQPACKET, kind} {
		fds, err := unix.Socketpair(unix.AF_UNIX, k|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, os.NewFile(uintptr(fds[0]), "ours"))
		theirs = append(theirs, os.NewFile(uintptr(fds[1]), "theirs"))
	}
	h = New(plan, handoff.New(nil, store.Pod{}))
	if err := h.SetTarget(&wire.NotifyRequest{Every: time.Hour, Label: label}, theirs); err != nil {
		t.Fatal(err)
	}
	for _, f := range theirs {
		f.Close()
	}
	t.Cleanup(func() {
		close(h.target.done)
		h.target.close()
		for _, f := range ours {
			f.Close()
		}
	})
	return h, ours[0], ours[1]
}

func readOne(t *testing.T, f *os.File) string {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := f.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

func TestNotifyShowsLinesWithTheirContainer(t *testing.T) {
	one, two := make([]pod.Container, 1), make([]pod.Container, 2)
	for _, tc := range []struct {
		plan  pod.Plan
		label string
		want  string
	}{
		{pod.Plan{Containers: one}, "", "a\nb\n"},
		{pod.Plan{Containers: two}, "", "app | a\napp | b\n"},
		{pod.Plan{Containers: one, InitContainers: one}, "", "app | a\napp | b\n"},
		{pod.Plan{Containers: one}, "web/", "web/app | a\nweb/app | b\n"},
	} {
		h, _, output := postedNotifier(t, &tc.plan, tc.label, unix.SOCK_STREAM)
		h.CopyLines("app", []byte("a\nb\n"))
		if got := readOne(t, output); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	New(&pod.Plan{}, handoff.New(nil, store.Pod{})).CopyLines("app", []byte("nobody looks\n"))
}

// A journal that does not read blocks no container; it gets the number of lines it misses.
func TestNotifyDropsUnreadMessages(t *testing.T) {
	h, _, output := postedNotifier(t, &pod.Plan{Name: "web", Containers: make([]pod.Container, 1)}, "", unix.SOCK_STREAM)
	line := append(bytes.Repeat([]byte("x"), 1<<20), '\n')
	start := time.Now()
	for range 3 {
		h.CopyLines("app", line)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("the container was held for %v", d)
	}
	all := make(chan string)
	go func() {
		text, _ := io.ReadAll(output)
		all <- string(text)
	}()
	for deadline := time.Now().Add(time.Minute); h.target.dropped > 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		h.CopyLines("app", []byte("after\n"))
	}
	unix.Shutdown(h.target.Output, unix.SHUT_WR)
	text := <-all
	if !strings.Contains(text, "lines are missing here; podrun logs web shows them\n") || !strings.HasSuffix(text, "after\n") {
		t.Errorf("%d bytes, the last of them %q", len(text), text[max(0, len(text)-200):])
	}
}

// Every notify target receives the pod's status; a later target replaces the earlier one.
func TestNotifySendsStatusOnce(t *testing.T) {
	plan := &pod.Plan{Name: "web", Containers: []pod.Container{{Name: "app"}}}
	h, socket, _ := postedNotifier(t, plan, "", unix.SOCK_STREAM)
	running := &pod.Status{Phase: pod.Running, Containers: []pod.ContainerStatus{{Name: "app", Ready: true, State: pod.State{Running: &pod.RunningAt{}}}}}
	h.SendStatus(running)
	h.SendStatus(running)
	h.Ping()
	for _, want := range []string{"STATUS=web: 1/1 Running", "WATCHDOG=1"} {
		if got := readOne(t, socket); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	later, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer later.Close()
	if err := h.SetTarget(&wire.NotifyRequest{Every: time.Hour}, []*os.File{theirs}); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if got := readOne(t, later); got != "STATUS=web: 1/1 Running" {
		t.Errorf("the later front hears %q", got)
	}
	if n, err := socket.Read(make([]byte, 1)); n != 0 {
		t.Errorf("the front before still has its end: %d bytes, %v", n, err)
	}
	h.CopyLines("app", []byte("it wants no output\n"))
}

func TestNotifyRefusesHalfARequest(t *testing.T) {
	h := New(&pod.Plan{}, handoff.New(nil, store.Pod{}))
	for _, req := range []wire.NotifyRequest{{Every: time.Second}, {}} {
		if err := h.SetTarget(&req, nil); err == nil {
			t.Errorf("%+v without descriptors was taken", req)
		}
	}
}
