package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/godbus/dbus/v5"
)

// hello waits until the manager answers. A busy systemd finds the end of the login and the first
// message together, takes both from its socket, and does not read the message before another one
// arrives (systemd 252: sd-bus' bus_socket_read_auth reads on, and nothing wakes it for the
// buffered data). So hello repeats a message that may be sent again until there is an answer.
func hello(ctx context.Context, conn *dbus.Conn) error {
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

// dial connects to the manager. A deadline on the socket bounds calls of the library that take no
// context.
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
	if err := hello(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// contextError returns ctx's cause if ctx has ended the wait, whatever error the library returned.
func contextError(ctx context.Context, err error) error {
	t, ok := ctx.Deadline()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || ok && !time.Now().Before(t) {
		return errors.New("it does not answer")
	}
	return err
}
