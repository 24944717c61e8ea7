package delegation

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOwnIsACgroupWithNobodyElse(t *testing.T) {
	mine := Subtree{Mount + scope, []string{"cpu", "io", "memory", "pids"}}
	for name, tt := range map[string]struct {
		own, procs string
		mine, want bool
	}{
		"alone in a delegated unit": {own: scope, procs: "4711\n", mine: true, want: true},
		"in the leaf of one":        {own: scope + "/supervisor", mine: true, want: true},
		"beside a shell":            {own: scope, procs: "17\n4711\n", mine: true},
		"in a login":                {own: scope, procs: "4711\n"},
	} {
		t.Run(name, func(t *testing.T) {
			v := fake(t, "0::"+tt.own+"\n", v2Mount, systemd(cgroup{scope, "memory pids", tt.procs, tt.mine}, cgroup{scope + "/supervisor", "", "4711\n", tt.mine}))
			s, ok, err := v.alone()
			if err != nil || ok != tt.want {
				t.Fatalf("got %v, %v, want %v", ok, err, tt.want)
			}
			if ok {
				if diff := cmp.Diff(mine, s); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	v := fake(t, "4:memory:/\n1:name=systemd:/\n", v1Mounts, nil)
	if _, ok, err := v.alone(); ok || err == nil {
		t.Errorf("on cgroup v1: %v, %v", ok, err)
	}
}

func TestManagerIsFoundByItsSocket(t *testing.T) {
	const users = Mount + "/user.slice/user-1000.slice/user@1000.service"
	for name, tt := range map[string]struct {
		uid           int
		runtime, have string
		file          bool
		want          Manager
	}{
		"a user's":                                 {uid: 1000, runtime: "/run/user/1000", have: "/run/user/1000/systemd/private", want: Manager{"/run/user/1000/systemd/private", users, "app.slice"}},
		"a user's, whose login says nothing":       {uid: 1000, have: "/run/user/1000/systemd/private", want: Manager{"/run/user/1000/systemd/private", users, "app.slice"}},
		"a user's, with another runtime directory": {uid: 1000, runtime: "/tmp/x", have: "/run/user/1000/systemd/private", want: Manager{"/run/user/1000/systemd/private", users, "app.slice"}},
		"the system's":                             {runtime: "/run/user/0", have: "/run/systemd/private", want: Manager{"/run/systemd/private", Mount, "system.slice"}},
		"not the system's for a user":              {uid: 1000, have: "/run/systemd/private"},
		"a file is none":                           {uid: 1000, have: "/run/user/1000/systemd/private", file: true},
	} {
		t.Run(name, func(t *testing.T) {
			// The whole path of a socket has at most 107 bytes.
			root, err := os.MkdirTemp("", "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(root) })
			path := filepath.Join(root, tt.have)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if tt.file {
				err = os.WriteFile(path, nil, 0o600)
			} else {
				var l net.Listener
				if l, err = net.Listen("unix", path); err == nil {
					defer l.Close()
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			got, ok := hostView{root: root}.manager(tt.uid, tt.runtime)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != Manager{}) {
				t.Error(ok, diff)
			}
		})
	}
}

func TestLeafIsRemovedWhenNobodyIsThere(t *testing.T) {
	dir := t.TempDir()
	if err := RemoveLeaf(dir); err != nil {
		t.Errorf("one that is not there: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, Leaf, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeaf(dir); err != nil {
		t.Errorf("one in use: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, Leaf, "x")); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeaf(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, Leaf)); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}
