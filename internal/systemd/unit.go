package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/podrun/podrun/internal/delegation"
)

// Unit is a running unit.
type Unit struct {
	Name  string // podrun@web.service
	Slice string // app-podrun.slice
}

// OwnUnit returns the service that this process belongs to, by its cgroup.
func OwnUnit() (Unit, bool) {
	cgroup, err := delegation.Of(os.Getpid())
	if err != nil {
		return Unit{}, false
	}
	return unitOf(cgroup)
}

// unitOf returns the innermost service in a cgroup's path. The user's manager is a service, too,
// but not one of the user's.
func unitOf(cgroup string) (Unit, bool) {
	for dir := cgroup; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		name := unescapeCgroup(filepath.Base(dir))
		if strings.HasSuffix(name, ".service") && !strings.HasPrefix(name, "user@") {
			u := Unit{Name: name}
			if slice := filepath.Base(filepath.Dir(dir)); strings.HasSuffix(slice, ".slice") {
				u.Slice = slice
			}
			return u, true
		}
		if strings.HasPrefix(name, "user@") {
			break
		}
	}
	return Unit{}, false
}

// unescapeCgroup removes the "_" that systemd puts before a unit's name that would be the name of a
// kernel file (cg_escape).
func unescapeCgroup(name string) string { return strings.TrimPrefix(name, "_") }

// Delegated reports whether the unit's cgroup is delegated to it (Delegate=).
func (u Unit) Delegated(ctx context.Context, m delegation.Manager) (bool, error) {
	v, err := u.property(ctx, m, "org.freedesktop.systemd1.Service", "Delegate")
	if err != nil {
		return false, err
	}
	on, _ := v.Value().(bool)
	return on, nil
}

// StopRequested reports whether a stop or restart of the unit was requested: it has a job other
// than a start. A unit that only crashed has none.
func (u Unit) StopRequested(ctx context.Context, m delegation.Manager) (bool, error) {
	v, err := u.property(ctx, m, "org.freedesktop.systemd1.Unit", "Job")
	if err != nil {
		return false, err
	}
	job, _ := v.Value().([]any) // (uo): 0 for none
	if len(job) != 2 {
		return false, fmt.Errorf("get the job of %s from systemd: unexpected answer %v", u.Name, v)
	}
	path, _ := job[1].(dbus.ObjectPath)
	if id, _ := job[0].(uint32); id == 0 {
		return false, nil
	}
	v, err = getProperty(ctx, m, path, "org.freedesktop.systemd1.Job", "JobType")
	return err == nil && v.Value() != "start", err
}

func (u Unit) property(ctx context.Context, m delegation.Manager, kind, name string) (dbus.Variant, error) {
	return getProperty(ctx, m, unitPath(u.Name), kind, name)
}

func getProperty(ctx context.Context, m delegation.Manager, path dbus.ObjectPath, kind, name string) (v dbus.Variant, err error) {
	conn, err := dial(ctx, m.Socket)
	if err != nil {
		return v, fmt.Errorf("request %s from systemd: %w", name, contextError(ctx, err))
	}
	defer conn.Close()
	err = conn.Object(destination, path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, kind, name).Store(&v)
	if err != nil {
		err = fmt.Errorf("request %s from systemd: %w", name, contextError(ctx, err))
	}
	return v, err
}

const destination = "org.freedesktop.systemd1"

// unitPath returns a unit's object path (sd_bus_path_encode): every character that is no letter or
// digit becomes _XX.
func unitPath(name string) dbus.ObjectPath {
	var b strings.Builder
	b.WriteString("/org/freedesktop/systemd1/unit/")
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return dbus.ObjectPath(b.String())
}
