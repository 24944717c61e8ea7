// Package systemd speaks to systemd: it asks the service manager for units. Only
// commands link it, never a pod's supervisor.
package systemd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/podrun/podrun/internal/delegation"
)

// Scope is a transient scope: a cgroup of the manager's for processes that others
// have started. It ends with the last of them, and then nothing of it is left.
type Scope struct {
	Name        string        // without a suffix, at most 255 bytes are used; a taken one gets a random suffix
	Description string        // what people see
	PID         int           // the process that is put there
	Stop        time.Duration // how long its processes may take to end when the machine goes down
	Slice       string        // the manager's own if empty
	Before      string        // a unit that is stopped before the scope, if any
}

// StartScope makes a scope with a cgroup that belongs to the caller (Delegate) and
// returns that cgroup once the process is in there. It waits no longer than ctx
// does. The manager is asked over its own socket.
func StartScope(ctx context.Context, m delegation.Manager, s Scope) (cgroup string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ask systemd for a scope: %w", timedOut(ctx, err))
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
	job, err := start(ctx, conn, unit, cmp.Or(s.Slice, m.Slice), s)
	var said dbus.Error
	if errors.As(err, &said) && said.Name == "org.freedesktop.systemd1.UnitExists" {
		unit = unitName(s.Name, "-"+rand.Text()[:8])
		job, err = start(ctx, conn, unit, cmp.Or(s.Slice, m.Slice), s)
	}
	if err != nil {
		return "", err
	}
	if err := await(ctx, ended, job); err != nil {
		return "", fmt.Errorf("%s: %w", unit, err)
	}
	return delegation.Of(s.PID)
}

// dial connects to the manager. A deadline on the socket bounds what the library
// does without a context.
func dial(ctx context.Context, socket string) (*dbus.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if t, ok := ctx.Deadline(); ok {
		c.SetDeadline(t)
	}
	conn, err := dbus.DialUnix(c.(*net.UnixConn))
	if err != nil {
		c.Close()
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(fmt.Sprint(os.Geteuid()))}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("log in at %s: %w", socket, err)
	}
	if err := greet(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// property and aux are what StartTransientUnit takes: (sv) and (sa(sv)).
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

func start(ctx context.Context, conn *dbus.Conn, unit, slice string, s Scope) (job dbus.ObjectPath, err error) {
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

// await waits for the end of a job. On its own socket the manager tells everybody.
func await(ctx context.Context, ended <-chan *dbus.Signal, job dbus.ObjectPath) error {
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

// maxUnit is systemd's limit of a unit's name.
const maxUnit = 255

func unitName(name, suffix string) string {
	suffix += ".scope"
	return name[:min(len(name), maxUnit-len(suffix))] + suffix
}

// timedOut says in plain words that ctx has ended the wait, whatever that looks like
// from inside the library.
func timedOut(ctx context.Context, err error) error {
	t, ok := ctx.Deadline()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || ok && !time.Now().Before(t) {
		return errors.New("it does not answer")
	}
	return err
}
