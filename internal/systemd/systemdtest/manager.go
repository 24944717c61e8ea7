package systemdtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// Manager is a user's service manager that records what it is asked and does nothing.
type Manager struct {
	mu        sync.Mutex
	calls     []string
	loadState string
	failing   string
	stopping  bool
}

// Start starts a manager for a user whose runtime directory is dir.
func Start(t testing.TB, dir string) *Manager {
	t.Helper()
	m := &Manager{loadState: "loaded"}
	dir = filepath.Join(dir, "systemd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	Listen(t, dir, m.serve)
	return m
}

// Calls returns what the manager was asked since the last call, one line each: Enable and the name of a unit.
func (m *Manager) Calls() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := strings.Join(m.calls, "\n")
	m.calls = nil
	return all
}

// Refuse sets whether the manager refuses the files of units, and the method whose jobs fail, or "".
func (m *Manager) Refuse(files bool, failing string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loadState, m.failing = "loaded", failing
	if files {
		m.loadState = "bad-setting"
	}
}

// ShutDown sets whether the manager is stopping all of its units.
func (m *Manager) ShutDown(stopping bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = stopping
}

func (m *Manager) serve(c net.Conn) {
	in, err := AcceptLogin(c)
	if err != nil {
		return
	}
	const job = dbus.ObjectPath("/org/freedesktop/systemd1/job/7")
	for serial := uint32(1); ; serial += 2 {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		method, _ := call.Headers[dbus.FieldMember].Value().(string)
		values, unit, result := m.answer(method, call.Body)
		if result != "" {
			values = []any{job}
		}
		if err := Reply(c, serial, call, values...); err != nil {
			return
		}
		if result != "" && Send(c, serial+1, JobRemoved(job, unit, result)) != nil {
			return
		}
	}
}

// answer returns the values of an answer or, of a job, its unit and its result.
func (m *Manager) answer(method string, body []any) (values []any, unit, result string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type change struct{ Kind, Link, Target string }
	var units []string
	switch method {
	case "EnableUnitFiles", "DisableUnitFiles":
		units, _ = body[0].([]string)
		if values = []any{[]change{{"symlink", "a", "b"}}}; method == "EnableUnitFiles" {
			values = []any{true, values[0]}
		}
	case "StartUnit", "StopUnit", "RestartUnit", "TryRestartUnit", "ReloadUnit":
		unit, _ = body[0].(string)
		if units, result = []string{unit}, "done"; method == m.failing {
			result = "failed"
		}
	case "ResetFailedUnit", "Reload":
		if len(body) > 0 {
			units = []string{fmt.Sprint(body[0])}
		}
	case "Get":
		state := "inactive"
		switch {
		case body[1] == "LoadState":
			state = m.loadState
		case body[1] == "SystemState" && m.stopping:
			state = "stopping"
		}
		return []any{dbus.MakeVariant(state)}, "", ""
	default: // a ping
		return nil, "", ""
	}
	m.calls = append(m.calls, strings.TrimSpace(method+" "+strings.Join(units, " ")))
	return values, unit, result
}
