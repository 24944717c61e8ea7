package probe

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// serveGRPC starts a server of the official library.
func serveGRPC(t *testing.T, register func(*grpc.Server)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return portOf(t, l.Addr().String())
}

type refusing struct {
	healthpb.UnimplementedHealthServer
}

func (refusing) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return nil, status.Error(codes.PermissionDenied, "not you: 100%\n")
}

func TestGRPC(t *testing.T) {
	h := health.NewServer()
	h.SetServingStatus("good", healthpb.HealthCheckResponse_SERVING)
	h.SetServingStatus("bad", healthpb.HealthCheckResponse_NOT_SERVING)
	healthy := serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, h) })
	bare := serveGRPC(t, func(*grpc.Server) {})
	denied := serveGRPC(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, refusing{}) })
	web := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, test := range []struct {
		name    string
		call    pod.GRPC
		outcome lifecycle.Outcome
		message string
	}{
		{"the server as a whole", pod.GRPC{Port: healthy}, lifecycle.Success, ""},
		{"a service", pod.GRPC{Port: healthy, Service: "good"}, lifecycle.Success, ""},
		{"one that is not well", pod.GRPC{Port: healthy, Service: "bad"}, lifecycle.Failure, `service unhealthy (responded with "NOT_SERVING")`},
		{"one that is not there", pod.GRPC{Port: healthy, Service: "what"}, lifecycle.Failure, "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"},
		{"no health service", pod.GRPC{Port: bare}, lifecycle.Failure, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health"},
		{"an error of its own", pod.GRPC{Port: denied}, lifecycle.Failure, "code = PermissionDenied desc = not you: 100%\n"},
		{"nobody", pod.GRPC{Port: closedPort(t)}, lifecycle.Failure, "error: failed to connect service at "},
		{"a web server", pod.GRPC{Port: web}, lifecycle.Failure, "error: failed to connect service at "},
		{"no TLS", pod.GRPC{Port: healthy, TLS: true}, lifecycle.Failure, "error: failed to connect service at "},
	} {
		outcome, message := local().Run(t.Context(), &pod.Handler{GRPC: &test.call}, time.Minute)
		if outcome != test.outcome || !strings.HasPrefix(message, test.message) && !strings.HasSuffix(message, test.message) {
			t.Errorf("%s: %s %q, want %s %q", test.name, outcome, message, test.outcome, test.message)
		}
	}
}

// TestGRPCRubbish: a server may answer anything.
func TestGRPCRubbish(t *testing.T) {
	frame := func(head byte, length uint32, message string) string {
		return string(binary.BigEndian.AppendUint32([]byte{head}, length)) + message
	}
	for _, test := range []struct{ name, body, trailer, want string }{
		{"nothing", "", "0", "the response is truncated"},
		{"too short", frame(0, 9, "\x08\x01"), "0", "the response is truncated"},
		{"a huge length", frame(0, 1<<32-1, ""), "0", "the response is truncated"},
		{"compressed", frame(1, 2, "\x08\x01"), "0", "compressed"},
		{"no status", frame(0, 2, "\x08\x01"), "", "without a grpc-status"},
		{"a strange status", frame(0, 2, "\x08\x01"), "99", "Code(99)"},
		{"no message", frame(0, 2, "\xff\xff"), "0", "not a HealthCheckResponse"},
		{"a field that is cut off", frame(0, 2, "\x12\x09"), "0", "not a HealthCheckResponse"},
		{"an unknown status", frame(0, 2, "\x08\x09"), "0", `responded with "9"`},
		{"the default", frame(0, 0, ""), "0", `responded with "UNKNOWN"`},
	} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			w.Write([]byte(test.body))
			if test.trailer != "" {
				w.Header().Set("Grpc-Status", test.trailer)
			}
		}))
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		outcome, message := local().Run(t.Context(), &pod.Handler{GRPC: &pod.GRPC{Port: portOf(t, s.Listener.Addr().String())}}, time.Minute)
		if outcome != lifecycle.Failure || !strings.Contains(message, test.want) {
			t.Errorf("%s: %s %q", test.name, outcome, message)
		}
		s.Close()
	}
}

// TestMessages: the library can read what this package writes, and the reverse.
func TestMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service := rapid.String().Draw(t, "service")
		var req healthpb.HealthCheckRequest
		if err := proto.Unmarshal(encodeRequest(service)[frameHead:], &req); err != nil || req.Service != service {
			t.Fatalf("%q: %q %v", service, req.Service, err)
		}
		want := healthpb.HealthCheckResponse_ServingStatus(rapid.IntRange(0, 300).Draw(t, "status"))
		b, err := proto.Marshal(&healthpb.HealthCheckResponse{Status: want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeStatus(b)
		if err != nil || got != uint64(want) {
			t.Fatalf("%d %v, want %d", got, err, want)
		}
		decodeStatus([]byte(rapid.String().Draw(t, "rubbish"))) // must not panic
	})
}
