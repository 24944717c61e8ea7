package wire

import (
	"encoding/binary"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// FuzzMessage: no input crashes or hangs a reader of the control protocol, whichever message it
// waits for, and the descriptors of a refused message are closed.
func FuzzMessage(f *testing.F) {
	framed := func(text string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	}
	for _, text := range []string{
		`{"verb":"stop","stop":{"graceSeconds":3}}`, `{"verb":"exec","exec":{"container":"a","args":["ls"]}}`,
		`{"status":{"phase":"Running"}}`, `{"error":{"message":"no","code":125}}`, `{"signal":15}`, `null`, `[]`, `{`,
	} {
		f.Add(framed(text))
	}
	f.Add([]byte{0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 9, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 { // a socket takes so much at once
			return
		}
		for _, read := range []func(*net.UnixConn) ([]*os.File, error){
			func(c *net.UnixConn) ([]*os.File, error) { _, files, err := ReadRequest(c); return files, err },
			func(c *net.UnixConn) ([]*os.File, error) { _, files, err := ReadFrame(c); return files, err },
			func(c *net.UnixConn) ([]*os.File, error) { _, err := ReadControl(c); return nil, err },
		} {
			a, b := connPair(t)
			if err := b.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if len(data) > 0 {
				if _, _, err := a.WriteMsgUnix(data, unix.UnixRights(0), nil); err != nil {
					t.Fatal(err)
				}
			}
			a.Close()
			files, err := read(b)
			if err != nil && len(files) > 0 {
				t.Errorf("%d descriptors of a message that is refused: %v", len(files), err)
			}
			for _, file := range files {
				file.Close()
			}
			b.Close()
		}
	})
}
