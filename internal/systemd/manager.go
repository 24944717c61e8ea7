package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/podrun/podrun/internal/delegation"
)

// Manager is a connection to a service manager.
type Manager struct {
	conn  *dbus.Conn
	ended chan *dbus.Signal
}

// connect connects to a manager over its own socket. The end of ctx closes the connection.
func connect(ctx context.Context, m delegation.Manager) (*Manager, error) {
	conn, err := dial(ctx, m.Socket)
	if err != nil {
		return nil, fmt.Errorf("connect to systemd: %w", contextError(ctx, err))
	}
	c := &Manager{conn: conn, ended: make(chan *dbus.Signal, 64)}
	conn.Signal(c.ended)
	return c, nil
}

// Close closes the connection.
func (m *Manager) Close() error { return m.conn.Close() }

func (m *Manager) call(ctx context.Context, method string, args ...any) *dbus.Call {
	call := m.conn.Object(destination, "/org/freedesktop/systemd1").CallWithContext(ctx, destination+".Manager."+method, 0, args...)
	if call.Err != nil {
		call.Err = fmt.Errorf("request %s from systemd: %w", method, contextError(ctx, call.Err))
	}
	return call
}

// reloadTime is the first timeout for the answer to a reload.
const reloadTime = 8 * time.Second

// Reload makes the manager read all unit files again. If the answer is lost in the reload (seen
// with systemd 252, when another reload came a moment before), Reload repeats the request: reading
// twice does no harm. Each timeout is longer, because a busy machine takes long, and systemd
// answers only the last request. (systemctl waits for 270 s.)
func (m *Manager) Reload(ctx context.Context) error {
	for patience := reloadTime; ; patience *= 4 {
		within, cancel := context.WithTimeout(ctx, patience)
		err := m.call(within, "Reload").Err
		lost := within.Err() != nil
		cancel()
		if err == nil || !lost || ctx.Err() != nil {
			return err
		}
	}
}

// Enable makes a unit start as its [Install] section defines; changed means that it was not enabled
// before.
func (m *Manager) Enable(ctx context.Context, unit string) (changed bool, err error) {
	var known bool
	return m.changesLinks(m.call(ctx, "EnableUnitFiles", []string{unit}, false, true), &known)
}

// Disable undoes Enable. A unit that is not enabled is no error.
func (m *Manager) Disable(ctx context.Context, unit string) (changed bool, err error) {
	return m.changesLinks(m.call(ctx, "DisableUnitFiles", []string{unit}, false))
}

// changesLinks reports whether a call has changed anything. The call returns other values and then
// a list of changes.
func (m *Manager) changesLinks(call *dbus.Call, before ...any) (changed bool, err error) {
	var changes []struct{ Kind, Link, Target string }
	if err := call.Store(append(before, &changes)...); err != nil {
		return false, err
	}
	return len(changes) > 0, nil
}

// ResetFailed clears the failed state of a unit.
func (m *Manager) ResetFailed(ctx context.Context, unit string) error {
	return ignoreMissing(m.call(ctx, "ResetFailedUnit", unit).Err)
}

// Start returns when the unit has started, or has failed. Restart and Stop wait likewise.
func (m *Manager) Start(ctx context.Context, unit string) error {
	return m.job(ctx, "StartUnit", unit)
}

// ReloadOrRestart makes a running unit apply its changed sources: by a reload, and if that fails by
// a restart.
func (m *Manager) ReloadOrRestart(ctx context.Context, unit string) error {
	if err := m.job(ctx, "ReloadUnit", unit); err == nil || ctx.Err() != nil {
		return err
	}
	return m.Restart(ctx, unit)
}

// Restart stops a unit and starts it.
func (m *Manager) Restart(ctx context.Context, unit string) error {
	return m.job(ctx, "RestartUnit", unit)
}

// TryRestart restarts a unit that runs.
func (m *Manager) TryRestart(ctx context.Context, unit string) error {
	return m.job(ctx, "TryRestartUnit", unit)
}

// Stop stops a unit. A missing unit counts as stopped.
func (m *Manager) Stop(ctx context.Context, unit string) error {
	return ignoreMissing(m.job(ctx, "StopUnit", unit))
}

func (m *Manager) job(ctx context.Context, method, unit string) error {
	var job dbus.ObjectPath
	if err := m.call(ctx, method, unit, "replace").Store(&job); err != nil {
		return err
	}
	if err := awaitJob(ctx, m.ended, job); err != nil {
		return fmt.Errorf("%s of %s: %w", method, unit, err)
	}
	return nil
}

// Active returns the state of a service (active, activating, failed, …) and its status text.
func (m *Manager) Active(ctx context.Context, unit string) (state, status string, err error) {
	if state, err = m.property(ctx, unit, "Unit", "ActiveState"); err == nil {
		status, err = m.property(ctx, unit, "Service", "StatusText")
	}
	return state, status, err
}

// Loaded reports whether the manager accepts a unit's file.
func (m *Manager) Loaded(ctx context.Context, unit string) (bool, error) {
	state, err := m.property(ctx, unit, "Unit", "LoadState")
	return state == "loaded", err
}

// property returns a property of a unit that is text; kind is the interface that has it.
func (m *Manager) property(ctx context.Context, unit, kind, name string) (text string, err error) {
	var v dbus.Variant
	err = m.conn.Object(destination, unitPath(unit)).
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, destination+"."+kind, name).Store(&v)
	if err != nil {
		return "", fmt.Errorf("get %s of %s from systemd: %w", name, unit, contextError(ctx, err))
	}
	text, _ = v.Value().(string)
	return text, nil
}

// ignoreMissing ignores the error for a unit that the manager does not know.
func ignoreMissing(err error) error {
	var dbusErr dbus.Error
	if errors.As(err, &dbusErr) && dbusErr.Name == "org.freedesktop.systemd1.NoSuchUnit" {
		return nil
	}
	return err
}

// AnswerTime is how long the service manager may take to answer a query.
const AnswerTime = 5 * time.Second

// ShuttingDown reports whether the caller's manager is stopping all of its units: the machine is being
// stopped or restarted, or, for a user's manager, the user's last login has ended. Without a manager it
// returns false.
func ShuttingDown(ctx context.Context) (bool, error) {
	manager, ok := delegation.FindManager()
	if !ok {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	v, err := getProperty(ctx, manager, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "SystemState")
	if err != nil {
		return false, err
	}
	return v.Value() == "stopping", nil
}

// Version returns the version of a service manager. A manager that answers also makes scopes. The
// call ends with ctx.
func Version(ctx context.Context, m delegation.Manager) (version string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("connect to systemd at %s: %w", m.Socket, contextError(ctx, err))
		}
	}()
	conn, err := dial(ctx, m.Socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	err = conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.systemd1.Manager", "Version").Store(&version)
	return version, err
}

// LingerEnabled reports whether the calling user's service manager, and with it the user's units,
// outlives the user's logins (loginctl enable-linger).
func LingerEnabled() bool {
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil {
		return false
	}
	_, err = os.Stat("/var/lib/systemd/linger/" + u.Username)
	return err == nil
}
