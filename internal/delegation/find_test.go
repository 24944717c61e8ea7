package delegation

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/report"
)

const (
	me       = 4711
	v2Mount  = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
	v1Mounts = "31 23 0:27 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro\n" +
		"32 31 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"33 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	user  = "/user.slice/user-1000.slice/user@1000.service"
	scope = user + "/app.slice/run-1.scope"
	all   = "cpuset cpu io memory pids"
)

// cgroup is one fake cgroup, by its path below the mount.
type cgroup struct {
	path, controllers, procs string
	mine                     bool
}

// fake makes a root directory with the caller's cgroup file, its mounts and the cgroups, each with
// its ancestors.
func fake(t *testing.T, own, mounts string, groups []cgroup) hostView {
	t.Helper()
	v := hostView{root: t.TempDir(), mount: func() (mount, error) { return parseMount(mounts), nil }, movable: []int{me}}
	put := func(path, text string) {
		path = v.root + path
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if own != "" {
		put("/proc/self/cgroup", own)
	}
	mine := map[string]bool{}
	for _, g := range groups {
		dir := filepath.Join(Mount, g.path)
		put(dir+"/cgroup.procs", g.procs)
		put(dir+"/cgroup.controllers", g.controllers+"\n")
		put(dir+"/cgroup.subtree_control", "")
		if g.path != "/" {
			put(dir+"/cgroup.type", "domain\n")
		}
		mine[v.root+dir] = g.mine
	}
	v.writable = func(path string) bool { return mine[path] || mine[filepath.Dir(path)] }
	return v
}

// systemd returns the cgroups that a user's manager makes for a login.
func systemd(more ...cgroup) []cgroup {
	return append([]cgroup{
		{path: "/", controllers: all, procs: "2\n3\n"},
		{path: "/user.slice", controllers: all},
		{path: "/user.slice/user-1000.slice", controllers: all},
		{path: user, controllers: all, mine: true},
		{path: user + "/app.slice", controllers: "memory pids", mine: true},
	}, more...)
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name, own, mounts string
		groups            []cgroup
		want              Subtree
		why, hint         string
	}{
		{
			name: "alone in a delegated scope", own: "0::" + scope + "\n", mounts: v2Mount,
			groups: systemd(cgroup{scope, all, "4711\n", true}),
			want:   Subtree{Mount + scope, []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "already in the leaf", own: "0::" + scope + "/supervisor\n", mounts: v2Mount,
			groups: systemd(cgroup{scope, "memory pids", "", true}, cgroup{scope + "/supervisor", "", "4711\n12\n0\n", true}),
			want:   Subtree{Mount + scope, []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "the unit's own supervisor, in a unit that is not ours", own: "0::/a.service/supervisor\n", mounts: v2Mount,
			groups: []cgroup{{path: "/", controllers: all}, {path: "/a.service", controllers: all}, {"/a.service/supervisor", "memory", "4711\n", true}},
			want:   Subtree{Mount + "/a.service/supervisor", []string{"memory"}},
		}, {
			name: "beside a shell: the nearest empty ancestor, with what its ancestors can hand down", own: "0::" + scope + "\n", mounts: v2Mount,
			groups: systemd(cgroup{scope, "memory pids", "17\n4711\n", true}),
			want:   Subtree{Mount + user + "/app.slice", []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "beside a process of another pid namespace", own: "0::" + scope + "\n", mounts: v2Mount,
			groups: systemd(cgroup{scope, "memory pids", "0\n4711\n", true}),
			want:   Subtree{Mount + user + "/app.slice", []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "a login session", own: "0::/user.slice/user-1000.slice/session-3.scope\n", mounts: v2Mount,
			groups: systemd(cgroup{"/user.slice/user-1000.slice/session-3.scope", all, "17\n4711\n", false}),
			why:    "the cgroup /sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope is not delegated to this user", hint: "Delegate=yes",
		}, {
			name: "beside a shell in a system service of ours", own: "0::/system.slice/a.service\n", mounts: v2Mount,
			groups: []cgroup{{path: "/", controllers: all}, {path: "/system.slice", controllers: all}, {"/system.slice/a.service", all, "17\n18\n4711\n", true}},
			why:    "the cgroup /sys/fs/cgroup/system.slice/a.service holds 2 other process(es)", hint: "Delegate=yes",
		}, {
			name: "root beside its shell", own: "0::/user.slice/user-0.slice/session-1.scope\n", mounts: v2Mount,
			groups: []cgroup{
				{"/", all, "2\n", true}, {"/user.slice", all, "", true}, {"/user.slice/user-0.slice", "pids", "", true},
				{"/user.slice/user-0.slice/session-1.scope", "pids", "17\n4711\n", true},
			},
			want: Subtree{Mount + "/user.slice/user-0.slice", []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "root without systemd: the root cgroup may hold processes", own: "0::/\n", mounts: v2Mount,
			groups: []cgroup{{"/", all, "1\n17\n4711\n", true}},
			want:   Subtree{Mount, []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "a container with a private cgroup namespace", own: "0::/\n", mounts: v2Mount,
			groups: []cgroup{{"/x/..", all, "4711\n", true}},
			want:   Subtree{Mount, []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "the same, with its entrypoint beside us: no root cgroup", own: "0::/\n", mounts: v2Mount,
			groups: []cgroup{{"/x/..", all, "1\n4711\n", true}},
			why:    "the cgroup /sys/fs/cgroup holds 1 other process(es)", hint: "Delegate=yes",
		}, {
			name: "a container that shares the host's cgroup namespace", own: "0::/docker/abc/d\n",
			mounts: strings.Replace(v2Mount, " / /sys", " /docker/abc /sys", 1),
			groups: []cgroup{{"/d", all, "4711\n", true}},
			want:   Subtree{Mount + "/d", []string{"cpu", "io", "memory", "pids"}},
		}, {
			name: "a container that shows its cgroups read-only", own: "0::/\n", mounts: strings.Replace(v2Mount, " rw,", " ro,", 1),
			why: "/sys/fs/cgroup is mounted read-only", hint: "mount cgroup v2",
		}, {
			name: "a cgroup outside of the namespace", own: "0::/../other\n", mounts: v2Mount,
			why: "this process's cgroup /../other lies outside of the mounted hierarchy", hint: "mount cgroup v2",
		}, {
			name: "a cgroup that is not the mounted one's child", own: "0::/docker/abcd\n", mounts: strings.Replace(v2Mount, " / /sys", " /docker/abc /sys", 1),
			why: "this process's cgroup /docker/abcd lies outside of the mounted hierarchy", hint: "mount cgroup v2",
		}, {
			name: "hybrid", own: "4:memory:/\n1:name=systemd:/\n0::/\n", mounts: v1Mounts,
			why: "this host uses cgroup v1 (hybrid: its v2 hierarchy has no controllers)", hint: "systemd.unified_cgroup_hierarchy=1",
		}, {
			name: "v1 only", own: "4:memory:/\n1:name=systemd:/\n", mounts: v1Mounts,
			why: "this host uses cgroup v1", hint: "systemd.unified_cgroup_hierarchy=1",
		}, {
			name: "not mounted", own: "0::/\n", mounts: "22 1 0:20 / / rw - ext4 /dev/vda rw\n",
			why: "no cgroup v2 file system is mounted on /sys/fs/cgroup", hint: "mount cgroup v2",
		}, {
			name: "no cgroups at all", mounts: "", why: "this kernel has no cgroups", hint: "CONFIG_CGROUPS",
		}, {
			name: "nothing delegated in a subtree of ours", own: "0::/a\n", mounts: v2Mount,
			groups: []cgroup{{path: "/", controllers: all}, {"/a", "", "4711\n", true}},
			why:    "the cgroup controllers cpu, io, memory, pids are not delegated to this user", hint: "delegate.conf",
		}, {
			name: "a cgroup removed under us", own: "0::/a (deleted)\n", mounts: v2Mount,
			groups: []cgroup{{path: "/", controllers: all}},
			why:    "the cgroup /sys/fs/cgroup/a does not exist", hint: "mount cgroup v2",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := find(fake(t, tt.own, tt.mounts, tt.groups))
			if tt.why == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			var not *NotDelegated
			if !errors.As(err, &not) || not.Error() != tt.why || !strings.Contains(report.Hint(err), tt.hint) {
				t.Errorf("got %+v, %v; want %q with a hint that says %q", got, err, tt.why, tt.hint)
			}
		})
	}
}

func TestLacks(t *testing.T) {
	for _, tt := range []struct {
		name, root string
		have, need []string
		want, hint string
	}{
		{"nothing", all, []string{"cpu", "memory"}, []string{"memory"}, "", ""},
		{"one", all, []string{"memory", "pids"}, []string{"cpu", "memory"}, "the cgroup controller cpu is not delegated to this user", "delegate.conf"},
		{"memory switched off on a board", "cpuset cpu io pids", []string{"cpu", "pids"}, []string{"memory"}, "the memory controller is switched off in this kernel", "CONFIG_MEMCG"},
		{"memory only not delegated", all, []string{"cpu"}, []string{"memory"}, "the cgroup controller memory is not delegated to this user", "delegate.conf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := fake(t, "", "", []cgroup{{path: "/", controllers: tt.root}})
			err := v.lacks(Subtree{Controllers: tt.have}, tt.need)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || err.Error() != tt.want || !strings.Contains(report.Hint(err), tt.hint) {
				t.Errorf("got %v (hint %q), want %q with a hint that says %q", err, report.Hint(err), tt.want, tt.hint)
			}
		})
	}
}

func TestOpenHandsControllersDownFromTheTop(t *testing.T) {
	v := fake(t, "", "", systemd(cgroup{scope, "memory pids", "17\n4711\n", true}))
	s := Subtree{Mount + user + "/app.slice", []string{"cpu", "memory"}}
	if err := s.prepare(v); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, path := range []string{user, user + "/app.slice", "/user.slice"} {
		b, err := os.ReadFile(v.root + Mount + path + "/cgroup.subtree_control")
		if err != nil {
			t.Fatal(err)
		}
		got[path] = string(b)
	}
	// A plain file keeps only the last write; in the kernel writes add up.
	want := map[string]string{user: "+cpu", user + "/app.slice": "+memory", "/user.slice": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOpenDoesNotTouchACrowdedCgroup(t *testing.T) {
	v := fake(t, "", "", systemd(cgroup{scope, all, "17\n4711\n", true}))
	err := Subtree{Mount + scope, []string{"cpu"}}.prepare(v)
	var not *NotDelegated
	if !errors.As(err, &not) || !strings.Contains(err.Error(), "holds 1 other process") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(v.root + Mount + scope + "/" + Leaf); !os.IsNotExist(err) {
		t.Errorf("the leaf was made: %v", err)
	}
}

func TestWriteNeverCreates(t *testing.T) {
	if err := Write(t.TempDir(), "cgroup.kill", "1"); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}
