// Package systemd is a client of systemd's service manager and generates its units. Only commands
// link it, never a pod's supervisor.
package systemd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/podrun/podrun/internal/delegation"
)

// Scope describes a transient scope: a cgroup of the manager for processes that others have
// started. It ends with the last of them and leaves nothing.
type Scope struct {
	Name        string        // without a suffix; at most 255 bytes are used; a taken name gets a random suffix
	Description string        // for users
	PID         int           // the process that is moved into the scope
	Stop        time.Duration // how long its processes may take to end at shutdown
	Slice       string        // the manager's own if empty
	Before      string        // a unit that is stopped before the scope, if any
	Values      ScopeValues
}

// ScopeValues are the cgroup values that have an effect only between sibling cgroups. The siblings of a
// pod's scope are other scopes and units; the pod's cgroup inside the scope has none.
type ScopeValues struct {
	CPUWeight            uint64 // 1…10000; 0: the manager's default
	MemoryMin, MemoryLow uint64 // bytes
}

// changes returns the properties in which v differs from before.
func (v ScopeValues) changes(before ScopeValues) (list []property) {
	for _, p := range []struct {
		name    string
		is, was uint64
	}{
		{"CPUWeight", v.CPUWeight, before.CPUWeight},
		{"MemoryMin", v.MemoryMin, before.MemoryMin}, // since systemd 240: not sent if it is not used
		{"MemoryLow", v.MemoryLow, before.MemoryLow},
	} {
		if p.is != p.was {
			list = append(list, property{p.name, dbus.MakeVariant(p.is)})
		}
	}
	return list
}

// StartScope makes a scope with a cgroup that belongs to the caller (Delegate) and returns that
// cgroup once the process is in it. The call ends with ctx. It uses a connection of its own to the
// manager.
func StartScope(ctx context.Context, m delegation.Manager, s Scope) (cgroup string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("request a scope from systemd: %w", contextError(ctx, err))
		}
	}()
	conn, err := dial(ctx, m.Socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ended := make(chan *dbus.Signal, 64)
	conn.Signal(ended)
	unit := unitName(s.Name, "")
	job, err := startTransientUnit(ctx, conn, unit, cmp.Or(s.Slice, m.Slice), s)
	var dbusErr dbus.Error
	if errors.As(err, &dbusErr) && dbusErr.Name == "org.freedesktop.systemd1.UnitExists" {
		unit = unitName(s.Name, randomSuffix())
		job, err = startTransientUnit(ctx, conn, unit, cmp.Or(s.Slice, m.Slice), s)
	}
	if err != nil {
		return "", err
	}
	if err := awaitJob(ctx, ended, job); err != nil {
		return "", fmt.Errorf("%s: %w", unit, err)
	}
	return delegation.Of(s.PID)
}

// ChangeScope changes the values of a running scope from before to after. It uses a connection of its own.
func ChangeScope(ctx context.Context, m delegation.Manager, unit string, before, after ScopeValues) error {
	changes := after.changes(before)
	if len(changes) == 0 {
		return nil
	}
	manager, err := connect(ctx, m)
	if err != nil {
		return err
	}
	defer manager.Close()
	const untilReboot = true // a transient unit ends before
	return manager.call(ctx, "SetUnitProperties", unit, untilReboot, changes).Err
}

// ScopeOf returns the scope that StartScope made for a pod, by the path of the pod's cgroup in it; name is
// Scope.Name.
func ScopeOf(cgroup, name string) (unit string, ok bool) {
	unit = filepath.Base(filepath.Dir(cgroup))
	suffix := strings.TrimSuffix(unit, ".scope")
	suffix = suffix[max(0, len(suffix)-len(randomSuffix())):]
	return unit, unit == unitName(name, "") || unit == unitName(name, suffix)
}

// randomSuffix distinguishes scopes whose names would be the same: pod y-z in namespace x, pod z in x-y.
func randomSuffix() string { return "-" + rand.Text()[:8] }

// property and aux are types of StartTransientUnit: (sv) and (sa(sv)).
type (
	property struct {
		Name  string
		Value dbus.Variant
	}
	aux struct {
		Name       string
		Properties []property
	}
)

func startTransientUnit(ctx context.Context, conn *dbus.Conn, unit, slice string, s Scope) (job dbus.ObjectPath, err error) {
	of := func(name string, v any) property { return property{name, dbus.MakeVariant(v)} }
	properties := []property{
		of("Description", s.Description),
		of("Slice", slice),
		of("PIDs", []uint32{uint32(s.PID)}),
		of("Delegate", true),
		of("CollectMode", "inactive-or-failed"),
		of("TimeoutStopUSec", uint64(s.Stop.Microseconds())),
	}
	if s.Before != "" {
		properties = append(properties, of("Before", []string{s.Before}))
	}
	properties = append(properties, s.Values.changes(ScopeValues{})...)
	err = conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.systemd1.Manager.StartTransientUnit", 0, unit, "fail", properties, []aux{}).
		Store(&job)
	return job, err
}

// awaitJob waits for the end of a job. On its own socket the manager sends signals to every client.
func awaitJob(ctx context.Context, ended <-chan *dbus.Signal, job dbus.ObjectPath) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s, ok := <-ended:
			if !ok {
				return net.ErrClosed
			}
			var id uint32
			var path dbus.ObjectPath
			var unit, result string
			if s.Name != "org.freedesktop.systemd1.Manager.JobRemoved" || dbus.Store(s.Body, &id, &path, &unit, &result) != nil || path != job {
				continue
			}
			if result != "done" {
				return fmt.Errorf("it ended with %q", result)
			}
			return nil
		}
	}
}

// maxUnit is systemd's limit of the length of a unit's name.
const maxUnit = 255

func unitName(name, suffix string) string {
	suffix += ".scope"
	return name[:min(len(name), maxUnit-len(suffix))] + suffix
}
