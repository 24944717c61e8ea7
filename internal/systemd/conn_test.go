package systemd

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// acceptLogin is the manager's side of the login.
func acceptLogin(c net.Conn) (*bufio.Reader, error) {
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		answer := "ERROR\r\n"
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(line, "BEGIN"):
			return in, nil
		case strings.Contains(line, "AUTH EXTERNAL"):
			answer = "OK 1234\r\n"
		case strings.Contains(line, "AUTH"):
			answer = "REJECTED EXTERNAL\r\n"
		}
		if _, err := c.Write([]byte(answer)); err != nil {
			return nil, err
		}
	}
}

// reply answers a call.
func reply(c net.Conn, serial uint32, call *dbus.Message, values ...any) error {
	m := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}, Body: values}
	return send(c, serial, m)
}

func send(c net.Conn, serial uint32, m *dbus.Message) error {
	if len(m.Body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(m.Body...))
	}
	return m.EncodeTo(numbered{c, serial}, binary.LittleEndian)
}

// swallower is a manager like a busy systemd 252: the first message, which arrives with the end of
// the login, waits until there is another.
func swallower(c net.Conn) {
	in, err := acceptLogin(c)
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
			if reply(c, serial, m) != nil {
				return
			}
		}
		waiting = waiting[:0]
	}
}

// numbered sets the serial number of a message, which the library keeps private; it is written as a
// whole.
type numbered struct {
	net.Conn
	serial uint32
}

func (n numbered) Write(b []byte) (int, error) {
	if len(b) >= 12 && b[0] == 'l' {
		binary.LittleEndian.PutUint32(b[8:], n.serial)
	}
	return n.Conn.Write(b)
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
