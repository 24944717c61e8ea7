package egress

import (
	"bytes"
	"testing"
)

// What a pod says to another host arrives, by both families, and back.
func TestTCP(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	for _, at := range []string{remoteAddr + ":80", "[" + remoteAddr6 + "]:80"} {
		l := listen(t, w.remote, at)
		serve(t, l, echoAll)
		c, err := dial(p.ns, "tcp", at)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		if err := exchange(c, []byte("word")); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if err := exchange(c, bytes.Repeat([]byte("stream"), 1<<20)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		c.Close()
	}
}
