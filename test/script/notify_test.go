package script

import (
	"fmt"
	"net"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// notify FILE runs the following commands as in a unit of Type=notify: it writes their messages to
// the service manager to FILE, one line for each assignment.
func notify(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "notify FILE")
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	path := ts.MkAbs("notify.sock")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			fmt.Fprintf(file, "%s\n", buf[:n])
		}
	}()
	ts.Defer(func() {
		conn.Close()
		<-done
		file.Close()
	})
	ts.Setenv("NOTIFY_SOCKET", path)
	ts.Setenv("WATCHDOG_USEC", "600000")
}
