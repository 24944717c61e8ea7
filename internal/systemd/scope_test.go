package systemd

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/delegation"
)

// deaf is a manager that accepts connections and calls do, and never answers.
func deaf(t *testing.T, do func(net.Conn)) delegation.Manager {
	t.Helper()
	m := delegation.Manager{Socket: filepath.Join(t.TempDir(), "private"), Slice: "app.slice"}
	l, err := net.Listen("unix", m.Socket)
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
			go do(c)
		}
	}()
	return m
}

func TestAManagerThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	login := func(c net.Conn) {
		b := make([]byte, 512)
		for _, answer := range []string{"REJECTED EXTERNAL\r\n", "OK 1234\r\n"} {
			if _, err := c.Read(b); err != nil {
				return
			}
			if strings.HasPrefix(string(b), "\x00") && answer[0] == 'R' {
				if _, err := c.Read(b); err != nil {
					return
				}
			}
			if _, err := c.Write([]byte(answer)); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		do  func(net.Conn)
		why string
	}{
		"hangs before the login": {func(net.Conn) {}, "it does not answer"},
		"hangs after the login":  {login, "it does not answer"},
		"hangs up":               {func(c net.Conn) { c.Close() }, "log in at"},
	} {
		t.Run(name, func(t *testing.T) {
			patience := 200 * time.Millisecond
			if name == "hangs up" {
				patience = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			_, err := StartScope(ctx, deaf(t, tt.do), Scope{Name: "podrun-a-b", PID: 1})
			if err == nil || !strings.Contains(err.Error(), "request a scope from systemd: "+tt.why) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestNoManager(t *testing.T) {
	_, err := StartScope(t.Context(), delegation.Manager{Socket: filepath.Join(t.TempDir(), "none")}, Scope{Name: "x", PID: 1})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

func TestUnitName(t *testing.T) {
	long := strings.Repeat("n", 300)
	for _, tt := range []struct{ name, suffix, want string }{
		{"podrun-default-web", "", "podrun-default-web.scope"},
		{"podrun-default-web.v1", "-ABC", "podrun-default-web.v1-ABC.scope"},
		{long, "-ABC", long[:245] + "-ABC.scope"},
	} {
		if got := unitName(tt.name, tt.suffix); got != tt.want || len(got) > 255 {
			t.Errorf("unitName(%q, %q) = %q", tt.name, tt.suffix, got)
		}
	}
}
