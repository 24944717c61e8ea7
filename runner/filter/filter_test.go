package filter

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main(map[string]func([]string) int{protocol.EntryFilter: Main})
	os.Exit(m.Run())
}

func profile(calls ...string) *configs.Seccomp {
	p := &configs.Seccomp{DefaultAction: configs.Allow}
	for _, name := range calls {
		p.Syscalls = append(p.Syscalls, &configs.Syscall{Name: name, Action: configs.Errno})
	}
	return p
}

// A compiled filter is stored completely or not at all.
func TestCompiledOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "filters")
	p := profile("mount", "keyctl")
	key, err := Key(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCompiled(dir, key); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("before: %v", err)
	}
	made, err := Make(dir, key, p)
	if err != nil || len(made.Program) < 5*8 || made.Flags != 0 {
		t.Fatalf("made %d bytes, flags %d: %v", len(made.Program), made.Flags, err)
	}
	kept, err := LoadCompiled(dir, key)
	if err != nil || !bytes.Equal(kept.Program, made.Program) || kept.Flags != made.Flags {
		t.Errorf("kept %v, made %v: %v", kept, made, err)
	}
	file := filepath.Join(dir, key)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{"nothing": nil, "cut off": whole[:len(whole)-1], "another": append(bytes.Clone(whole[:len(whole)-1]), 1)} {
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadCompiled(dir, key); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A profile with different content has a different key.
func TestKey(t *testing.T) {
	flagged := profile("mount")
	flagged.Flags = []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagLog}
	seen := map[string]bool{}
	for _, p := range []*configs.Seccomp{profile("mount"), profile("keyctl"), profile(), flagged} {
		key, err := Key(p)
		if err != nil || seen[key] {
			t.Errorf("%v has key %s, %v", p, key, err)
		}
		seen[key] = true
	}
	f, err := Make(t.TempDir(), "k", flagged)
	if err != nil || f.Flags != 2 { // SECCOMP_FILTER_FLAG_LOG
		t.Errorf("flags %d: %v", f.Flags, err)
	}
}

func TestWhatCannotBeCompiled(t *testing.T) {
	bad := profile("mount")
	bad.Architectures = []string{"nonsense"}
	if _, err := Make(t.TempDir(), "k", bad); err == nil || !strings.Contains(err.Error(), "architecture") {
		t.Errorf("%v", err)
	}
	notify := profile("mount")
	notify.Syscalls[0].Action = configs.Notify
	if Compilable(notify) || !Compilable(profile("mount")) {
		t.Error("one that notifies is libcontainer's, others are not")
	}
}

// Without space to store it a filter is still usable.
func TestNoRoomToKeep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Make(file, "k", profile("mount")); err != nil || len(f.Program) == 0 {
		t.Errorf("%v %v", f, err)
	}
}
