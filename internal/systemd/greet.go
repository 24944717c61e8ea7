package systemd

import (
	"context"
	"errors"
	"time"

	"github.com/godbus/dbus/v5"
)

// greet waits until the manager answers. A systemd that is busy finds the end of the login
// and the first message together, takes both from its socket, and does not look at the
// message before another comes (systemd 252: sd-bus' bus_socket_read_auth reads on, and
// nothing wakes it for what it has in hand). So the first message is one that may be sent
// again, until there is an answer: what follows it gets through.
func greet(ctx context.Context, conn *dbus.Conn) error {
	manager := conn.Object(destination, "/org/freedesktop/systemd1")
	for patience := 50 * time.Millisecond; ; patience = min(2*patience, 5*time.Second) {
		within, cancel := context.WithTimeout(ctx, patience)
		err := manager.CallWithContext(within, "org.freedesktop.DBus.Peer.Ping", 0).Err
		late := within.Err() != nil
		cancel()
		switch {
		case err == nil, errors.As(err, new(dbus.Error)):
			return nil
		case ctx.Err() != nil || !late:
			return err
		}
	}
}
