package host

import (
	"encoding/binary"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPrograms(t *testing.T) {
	attr := func(effective, permitted uint32) []byte {
		b := make([]byte, 20) // vfs_cap_data, revision 2
		binary.LittleEndian.PutUint32(b, 0x02000000|effective)
		binary.LittleEndian.PutUint32(b[4:], permitted)
		return b
	}
	for name, tt := range map[string]struct {
		p    privilegedProgram
		want bool
	}{
		"setuid root":                     {privilegedProgram{mode: 0o755 | fs.ModeSetuid}, true},
		"setuid of somebody else":         {privilegedProgram{mode: 0o755 | fs.ModeSetuid, owner: 5}, false},
		"setuid root, not executable":     {privilegedProgram{mode: 0o644 | fs.ModeSetuid}, false},
		"plain":                           {privilegedProgram{mode: 0o755}, false},
		"with the capability":             {privilegedProgram{mode: 0o755, caps: attr(1, 1<<unix.CAP_SETUID)}, true},
		"with another capability":         {privilegedProgram{mode: 0o755, caps: attr(1, 1<<unix.CAP_SETGID)}, false},
		"with it permitted, not in force": {privilegedProgram{mode: 0o755, caps: attr(0, 1<<unix.CAP_SETUID)}, false},
		"with a truncated attribute":      {privilegedProgram{mode: 0o755, caps: attr(1, 1<<unix.CAP_SETUID)[:8]}, false},
	} {
		if got := tt.p.hasCapability(unix.CAP_SETUID); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for b.Loop() {
		Check(Setup{Data: "/tmp", Runtime: "/tmp"})
	}
}

func TestThisHost(t *testing.T) {
	for _, f := range Check(Setup{Data: "/tmp", Runtime: "/tmp"}) {
		if f.Name == "" || f.Detail == "" || (f.Level == OK) != (f.Hint == "") {
			t.Fatalf("a finding says too little or too much: %+v", f)
		}
	}
	total, err := MemoryTotal()
	if err != nil || total < 64<<20 {
		t.Errorf("memory %d, %v", total, err)
	}
}

// TestForkUserns compares the result of the fork with the result of the files. If the files of this host
// leave a doubt, the fork is right by definition.
func TestForkUserns(t *testing.T) {
	v := newProber(Setup{})
	sure := v.sysctl(clone) != "0" && v.sysctl(maximum) != "0" && v.sysctl(apparmor) != "1" && v.status("Seccomp") != "2"
	if err := forkUserns(); sure && err != nil {
		t.Errorf("the files allow user namespaces, the fork says: %v", err)
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}

func TestMemTotal(t *testing.T) {
	for _, text := range []string{"", "MemTotal: 12 MB\n", "MemTotal: x kB\n", "MemTotal: 99999999999999999999 kB\n", "MemTotal: 9007199254740992 kB\n"} {
		if got, err := meminfo(text, "MemTotal"); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}
