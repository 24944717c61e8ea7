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
		unit = unitName(s.Name, "-"+rand.Text()[:8])
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
