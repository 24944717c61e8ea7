package runner

import (
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/ingress"
	"github.com/podrun/podrun/netns/services"
)

// A port of the machine that cannot be served now, as there is no descriptor left perhaps, is
// tried again with the next change of the Services, and not taken for one that is served.
func TestNodePortIsTriedAgain(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	h := hostport.Port{Protocol: "tcp", Number: 30471, Shared: true}
	file, err := hostport.Bind(h)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := newPublisher(nil)
	p.inherit(h.String(), file)
	p.live, p.server = true, ingress.New(nil) // it serves nothing
	defer p.server.Close()
	for range 2 {
		if err := p.lead(nil, []services.Node{{Protocol: "TCP", Port: 30471, To: 80}}); err == nil || p.nodes[h.String()].served {
			t.Errorf("it is taken for served: %v", err)
		}
	}
}
