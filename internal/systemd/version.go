package systemd

import (
	"context"
	"fmt"

	"github.com/podrun/podrun/internal/delegation"
)

// Version asks a service manager for its version: who answers that gives scopes,
// too. It waits no longer than ctx does.
func Version(ctx context.Context, m delegation.Manager) (version string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ask systemd at %s: %w", m.Socket, timedOut(ctx, err))
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
