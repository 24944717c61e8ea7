package stackclient_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/netstack/stackclient"
	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/router"
)

// behaviour names what the stack does, for the process that plays it.
const behaviour = "PODRUN_TEST_STACK"

// The test binary is also the program of the stack.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == protocol.EntryNetstack {
		serve(os.Getenv(behaviour))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve plays the stack: it answers the first message, and each VerbPause with whether it is idle.
func serve(does string) {
	channel, err := stackproto.InheritedChannel()
	if err != nil {
		panic(err)
	}
	start, files, err := channel.Receive()
	if err != nil || len(files) != 1 || start.Config == nil || start.Config.Slot != 7 || !start.Config.HostLoopback {
		panic("no start, or without the device")
	}
	switch does {
	case "ends":
		return
	case "refuses":
		channel.Send(stackproto.Message{Verb: stackproto.VerbStarted, Error: "no such device"})
	case "confuses":
		channel.Send(stackproto.Message{Verb: stackproto.VerbPaused})
	default:
		channel.Send(stackproto.Message{Verb: stackproto.VerbStarted})
	}
	for {
		m, _, err := channel.Receive()
		switch {
		case err != nil: // the channel is closed
			return
		case m.Verb == stackproto.VerbPause:
			channel.Send(stackproto.Message{Verb: stackproto.VerbPaused, Done: does == "idle"})
		}
	}
}

// start starts a client whose stack behaves so.
func start(t *testing.T, does string) (*stackclient.Client, error) {
	t.Helper()
	t.Setenv(behaviour, does)
	device, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	return stackclient.Start("/proc/self/exe", egress.Config{Slot: 7, HostLoopback: true}, router.TrafficFDs{router.TrafficPackets: device})
}

// TestStartFails: a stack that does not serve is no client, and the error names the reason.
func TestStartFails(t *testing.T) {
	for does, want := range map[string]string{
		"ends":     "the process has ended",
		"refuses":  "no such device",
		"confuses": "the process sent paused, not started",
	} {
		c, err := start(t, does)
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "serve the pod's network in user space: ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", does, err, want)
		}
	}
}

// TestPause: a stack with active flows is not paused.
func TestPause(t *testing.T) {
	for does, want := range map[string]bool{"idle": true, "busy": false} {
		c, err := start(t, does)
		if err != nil {
			t.Fatal(err)
		}
		got := c.Pause()
		if got != want {
			t.Errorf("%s: paused %t", does, got)
		}
		if got {
			c.Resume()
		}
		c.Close()
	}
}
