package systemd

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/podrun/podrun/internal/systemd/systemdtest"
)

// swallower is a manager like a busy systemd 252: the first message, which arrives with the end of
// the login, waits until there is another.
func swallower(c net.Conn) {
	in, err := systemdtest.AcceptLogin(c)
	if err != nil {
		return
	}
	waiting := []*dbus.Message{}
	for serial := uint32(0); ; {
		m, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		if waiting = append(waiting, m); serial == 0 && len(waiting) == 1 {
			continue
		}
		for _, m := range waiting {
			serial++
			if systemdtest.Reply(c, serial, m) != nil {
				return
			}
		}
		waiting = waiting[:0]
	}
}

func TestLostHello(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := connect(ctx, deaf(t, swallower))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.ResetFailed(ctx, "x.service"); err != nil {
		t.Error(err)
	}
}
