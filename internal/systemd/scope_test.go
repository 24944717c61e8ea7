package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/systemd/systemdtest"
)

// deaf is a manager that accepts connections and calls do, and never answers.
func deaf(t *testing.T, do func(net.Conn)) delegation.Manager {
	t.Helper()
	return delegation.Manager{Socket: systemdtest.Listen(t, t.TempDir(), do), Slice: "app.slice"}
}

func TestAManagerThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	login := func(c net.Conn) {
		b := make([]byte, 512)
		for _, answer := range []string{"REJECTED EXTERNAL\r\n", "OK 1234\r\n"} {
			if _, err := c.Read(b); err != nil {
				return
			}
			if strings.HasPrefix(string(b), "\x00") && answer[0] == 'R' {
				if _, err := c.Read(b); err != nil {
					return
				}
			}
			if _, err := c.Write([]byte(answer)); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		do  func(net.Conn)
		why string
	}{
		"hangs before the login": {func(net.Conn) {}, "it does not answer"},
		"hangs after the login":  {login, "it does not answer"},
		"hangs up":               {func(c net.Conn) { c.Close() }, "log in at"},
	} {
		t.Run(name, func(t *testing.T) {
			patience := 200 * time.Millisecond
			if name == "hangs up" {
				patience = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			_, err := StartScope(ctx, deaf(t, tt.do), Scope{Name: "podrun-a-b", PID: 1})
			if err == nil || !strings.Contains(err.Error(), "request a scope from systemd: "+tt.why) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// recorder is a manager that does what it is asked. It sends the properties of scopes to calls.
func recorder(t *testing.T, calls chan<- map[string]any) func(net.Conn) {
	return func(c net.Conn) {
		in, err := systemdtest.AcceptLogin(c)
		if err != nil {
			return
		}
		const job = dbus.ObjectPath("/org/freedesktop/systemd1/job/7")
		for serial := uint32(1); ; serial += 2 {
			m, err := dbus.DecodeMessage(in)
			if err != nil {
				return
			}
			var values []any
			var properties []property
			switch method := m.Headers[dbus.FieldMember].Value().(string); method {
			case "StartTransientUnit":
				var unit, mode string
				var others []aux
				err = dbus.Store(m.Body, &unit, &mode, &properties, &others)
				values = []any{job}
			case "SetUnitProperties":
				var unit string
				var runtime bool
				err = dbus.Store(m.Body, &unit, &runtime, &properties)
				if unit != "podrun-a-b.scope" || !runtime {
					t.Errorf("changed %s, runtime %v", unit, runtime)
				}
			}
			if err != nil {
				t.Error(err)
			}
			if err := systemdtest.Reply(c, serial, m, values...); err != nil {
				return
			}
			if properties == nil {
				continue
			}
			got := map[string]any{}
			for _, p := range properties {
				got[p.Name] = p.Value.Value()
			}
			calls <- got
			if systemdtest.Send(c, serial+1, systemdtest.JobRemoved(job, "podrun-a-b.scope", "done")) != nil {
				return
			}
		}
	}
}

// TestScopeHasTheValuesThatActAmongSiblings checks the properties at the start and at a change, which has only
// what differs.
func TestScopeHasTheValuesThatActAmongSiblings(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calls := make(chan map[string]any, 1)
	m := deaf(t, recorder(t, calls))
	small, large := ScopeValues{CPUWeight: 17, MemoryLow: 1 << 20}, ScopeValues{CPUWeight: 100, MemoryMin: 1 << 21}
	_, err := StartScope(ctx, m, Scope{Name: "podrun-a-b", PID: os.Getpid(), Values: small})
	if err != nil && !errors.As(err, new(*delegation.NotDelegated)) { // the test's own process has no cgroup v2
		t.Fatal(err)
	}
	started := <-calls
	if _, set := started["MemoryMin"]; started["CPUWeight"] != uint64(17) || started["MemoryLow"] != uint64(1<<20) || set || started["Delegate"] != true {
		t.Errorf("started with %v", started)
	}
	for _, change := range []struct {
		from, to ScopeValues
		want     map[string]any
	}{
		{small, large, map[string]any{"CPUWeight": uint64(100), "MemoryMin": uint64(1 << 21), "MemoryLow": uint64(0)}},
		{ScopeValues{CPUWeight: 1, MemoryLow: 1}, ScopeValues{CPUWeight: 2, MemoryLow: 1}, map[string]any{"CPUWeight": uint64(2)}},
	} {
		if err := ChangeScope(ctx, m, "podrun-a-b.scope", change.from, change.to); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(change.want, <-calls); diff != "" {
			t.Error(diff)
		}
	}
	// Without a difference the manager is not asked.
	if err := ChangeScope(ctx, delegation.Manager{Socket: "/none"}, "podrun-a-b.scope", small, small); err != nil {
		t.Error(err)
	}
}

func TestScopeOf(t *testing.T) {
	const app = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/"
	for _, tt := range []struct {
		cgroup, unit string
		ok           bool
	}{
		{app + "podrun-a-b.scope/podrun-1", "podrun-a-b.scope", true},
		{app + "podrun-a-b-ABCD2345.scope/podrun-1", "podrun-a-b-ABCD2345.scope", true},
		{app + "run-r17.scope/podrun-1", "run-r17.scope", false},
		{app + "podrun-other.service/podrun-1", "podrun-other.service", false},
		{"", ".", false},
	} {
		if unit, ok := ScopeOf(tt.cgroup, "podrun-a-b"); unit != tt.unit || ok != tt.ok {
			t.Errorf("%s: %s, %v", tt.cgroup, unit, ok)
		}
	}
	long := strings.Repeat("n", 300)
	if _, ok := ScopeOf(app+unitName(long, "-ABCD2345")+"/podrun-1", long); !ok {
		t.Error("a name that was cut is not found")
	}
}

func TestNoManager(t *testing.T) {
	_, err := StartScope(t.Context(), delegation.Manager{Socket: filepath.Join(t.TempDir(), "none")}, Scope{Name: "x", PID: 1})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

func TestUnitName(t *testing.T) {
	long := strings.Repeat("n", 300)
	for _, tt := range []struct{ name, suffix, want string }{
		{"podrun-default-web", "", "podrun-default-web.scope"},
		{"podrun-default-web.v1", "-ABC", "podrun-default-web.v1-ABC.scope"},
		{long, "-ABC", long[:245] + "-ABC.scope"},
	} {
		if got := unitName(tt.name, tt.suffix); got != tt.want || len(got) > 255 {
			t.Errorf("unitName(%q, %q) = %q", tt.name, tt.suffix, got)
		}
	}
}
