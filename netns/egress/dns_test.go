package egress

import (
	"net"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
)

// echo is a resolver that returns the query.
type echo struct{}

func (echo) Answer(query []byte) []byte { return query }
func (echo) ServeConn(c net.Conn)       { c.Close() }

// A client sends queries for both families at once through one socket. None may be lost while the
// other is answered, or the client waits for seconds.
func TestConcurrentQueries(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1, func(c *Config) { c.Names = echo{} })
	for _, gateway := range []string{w.Pool.Gateway().V4.String() + ":53", "[" + w.Pool.Gateway().V6.String() + "]:53"} {
		c := nettest.Connect(t, p.ns, "udp", gateway)
		buf := make([]byte, 100)
		for round := range 3000 {
			for _, q := range []string{"one", "two"} {
				if _, err := c.Write([]byte(q)); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if _, err := c.Read(buf); err != nil {
					t.Fatalf("%s: round %d: %v", gateway, round, err)
				}
			}
		}
		c.Close()
	}
}
