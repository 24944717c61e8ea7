// Package systemdtest is the service manager's side of its D-Bus socket, for tests.
package systemdtest

import (
	"bufio"
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// Listen returns the path of a socket in dir whose connections serve gets.
func Listen(t testing.TB, dir string, serve func(net.Conn)) (socket string) {
	t.Helper()
	socket = filepath.Join(dir, "private")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go serve(c)
		}
	}()
	return socket
}

// AcceptLogin is the manager's side of the login.
func AcceptLogin(c net.Conn) (*bufio.Reader, error) {
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

// Reply answers a call.
func Reply(c net.Conn, serial uint32, call *dbus.Message, values ...any) error {
	m := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}, Body: values}
	return Send(c, serial, m)
}

// Send sends a message with a serial number.
func Send(c net.Conn, serial uint32, m *dbus.Message) error {
	if len(m.Body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(m.Body...))
	}
	return m.EncodeTo(numbered{c, serial}, binary.LittleEndian)
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

// JobRemoved returns the signal of the end of a job.
func JobRemoved(job dbus.ObjectPath, unit, result string) *dbus.Message {
	return &dbus.Message{Type: dbus.TypeSignal, Body: []any{uint32(7), job, unit, result}, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/systemd1")),
		dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.systemd1.Manager"), dbus.FieldMember: dbus.MakeVariant("JobRemoved")}}
}
