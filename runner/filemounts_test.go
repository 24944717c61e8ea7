package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// What podrun makes for a container is seen in a volume that is mounted around it, too,
// unless the volume has no place for it.
func TestFilesOfPodrunsOverVolumes(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	host := t.TempDir()
	for _, name := range []string{"hosts", "own"} {
		if err := os.WriteFile(filepath.Join(host, name), []byte("the volume's "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const files = "cat /etc/hostname; grep -c localhost /etc/hosts; ls /etc"
	kube := "p\n2\nhostname\nhosts\nresolv.conf\n"
	for _, tt := range []struct {
		name, script, message string
		v                     pod.Volume
		m                     pod.Mount
		want, said            string
	}{
		{name: "a volume around them", script: files, v: pod.Volume{Kind: pod.EmptyDir}, m: pod.Mount{Path: "/etc"}, want: kube},
		{name: "in memory", script: files, v: pod.Volume{Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20}, m: pod.Mount{Path: "/etc"}, want: kube},
		{name: "a part of one", script: files, v: pod.Volume{Kind: pod.EmptyDir}, m: pod.Mount{Path: "/etc", SubPath: "a"}, want: kube},
		{name: "read-only without all of them", script: "cat /etc/hostname; grep -c localhost /etc/hosts; cat /etc/own; ls /etc",
			v: pod.Volume{Kind: pod.HostPath, Path: host}, m: pod.Mount{Path: "/etc", ReadOnly: true}, want: "2\nthe volume's own\nhosts\nown\n"},
		{name: "mounted at one itself", script: "cat /etc/hosts", v: pod.Volume{Kind: pod.HostPath, Path: filepath.Join(host, "hosts")},
			m: pod.Mount{Path: "/etc/hosts"}, want: "the volume's hosts\n"},
		{name: "a message in a volume", script: "echo last words >/tmp/a/log", message: "/tmp/a/log",
			v: pod.Volume{Kind: pod.EmptyDir}, m: pod.Mount{Path: "/tmp"}, said: "last words\n"},
		{name: "a message where nobody may make files", script: "test -c /dev/null && echo here", message: "/dev/termination-log",
			v: pod.Volume{Kind: pod.HostPath, Path: "/dev"}, m: pod.Mount{Path: "/dev"}, want: "here\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := shell(l, "a", tt.script+" 2>&1; true")
			c.TerminationMessagePath = tt.message
			tt.v.Name, tt.m.Volume = "v", "v"
			c.Mounts = append(c.Mounts, tt.m)
			plan := newPlan(nil, []pod.Container{c})
			plan.Volumes = []pod.Volume{tt.v}
			p := start(t, plan)
			st := p.ended()
			if st.Phase != pod.Succeeded {
				t.Fatalf("%+v", st)
			}
			got := p.log("a")
			if !strings.HasPrefix(tt.want, "p") {
				got = strings.ReplaceAll(got, "cat: can't open '/etc/hostname': No such file or directory\n", "")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if end := st.Containers[0].State.Terminated; end == nil || end.Message != tt.said {
				t.Errorf("ended as %+v, want the message %q", end, tt.said)
			}
		})
	}
	if found, err := filepath.Glob(filepath.Join(host, "*")); err != nil || len(found) != 2 {
		t.Errorf("the host's directory has %v, %v", found, err)
	}
}
