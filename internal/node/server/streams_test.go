package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilremotecommand "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

// clientConfig returns the credentials of the API server.
func (h *host) clientConfig(t *testing.T) *rest.Config {
	t.Helper()
	cert := h.issue(t, "apiserver", time.Now().Add(time.Hour))
	return &rest.Config{Host: h.url, TLSClientConfig: rest.TLSClientConfig{CAData: h.pem(), CertData: encodeChain(cert), KeyData: encodeKey(t, cert)}}
}

// executors returns a client of kubectl for a path, in each of its protocols.
func (h *host) executors(t *testing.T, path string) map[string]remotecommand.Executor {
	t.Helper()
	config := h.clientConfig(t)
	u, err := url.Parse(h.url + path)
	if err != nil {
		t.Fatal(err)
	}
	overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	// API servers send websockets of version 4 only: in them a client cannot close its input.
	overWebSocket, err := remotecommand.NewWebSocketExecutorForProtocols(config, http.MethodGet, u.String(), utilremotecommand.StreamProtocolV4Name)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"SPDY": overSPDY, "websocket": overWebSocket}
}

// TestExec: a command gets its input, and the client its output and exit code.
func TestExec(t *testing.T) {
	h := serve(t)
	h.pods.exec = func(_ context.Context, command []string, s Streams) (int, error) {
		input := make([]byte, len("words"))
		_, err := io.ReadFull(s.In, input)
		fmt.Fprintf(s.Out, "%s %s", strings.Join(command, " "), input)
		fmt.Fprint(s.Err, "problem")
		return 3, err
	}
	for name, e := range h.executors(t, "/exec/default/web/main?command=cat&command=-&input=1&output=1&error=1") {
		var out, errOut bytes.Buffer
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("words"), Stdout: &out, Stderr: &errOut})
		var exit utilexec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 3 || out.String() != "cat - words" || errOut.String() != "problem" {
			t.Errorf("%s: %v, output %q, errors %q", name, err, &out, &errOut)
		}
	}
}

// TestTerminal: a command with a terminal gets its sizes.
func TestTerminal(t *testing.T) {
	h := serve(t)
	h.pods.exec = func(_ context.Context, _ []string, s Streams) (int, error) {
		first, second := <-s.Sizes, <-s.Sizes
		fmt.Fprint(s.Out, s.Terminal, first, second)
		return 0, nil
	}
	for name, e := range h.executors(t, "/exec/default/web/main?command=sh&input=1&output=1&tty=1") {
		var out bytes.Buffer
		in, writer := io.Pipe()
		queue := sizeQueue{{Width: 80, Height: 24}, {Width: 132, Height: 43}}
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: true, TerminalSizeQueue: &queue})
		writer.Close()
		if err != nil || out.String() != "true {80 24} {132 43}" {
			t.Errorf("%s: %v, output %q", name, err, &out)
		}
	}
}

// sizeQueue is a terminal that has these sizes one after another.
type sizeQueue []remotecommand.TerminalSize

func (q *sizeQueue) Next() *remotecommand.TerminalSize {
	if len(*q) == 0 {
		return nil
	}
	next := (*q)[0]
	*q = (*q)[1:]
	return &next
}

// TestClientDisconnects: the context of a command ends with its client.
func TestClientDisconnects(t *testing.T) {
	h := serve(t)
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	h.pods.attach = func(ctx context.Context, s Streams) error {
		fmt.Fprint(s.Out, "hello")
		started <- struct{}{}
		io.Copy(io.Discard, s.In)
		ended <- struct{}{}
		return nil
	}
	for name, e := range h.executors(t, "/attach/default/web/main?input=1&output=1") {
		ctx, cancel := context.WithCancel(t.Context())
		in, writer := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: io.Discard})
		}()
		<-started
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		<-ended
		writer.Close()
	}
}

// TestPortForward: connections to two ports of a pod.
func TestPortForward(t *testing.T) {
	h := serve(t)
	var mu sync.Mutex
	var ports []int32
	h.pods.portForward = func(port int32, stream io.ReadWriteCloser) error {
		mu.Lock()
		ports = append(ports, port)
		mu.Unlock()
		_, err := io.Copy(stream, stream)
		stream.Close()
		return err
	}
	transport, upgrader, err := spdy.RoundTripperFor(h.clientConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(h.url + "/portForward/default/web")
	if err != nil {
		t.Fatal(err)
	}
	conn, protocol, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u).Dial(portforward.PortForwardProtocolV1Name)
	if err != nil || protocol != portforward.PortForwardProtocolV1Name {
		t.Fatal(protocol, err)
	}
	defer conn.Close()
	for i, port := range []string{"80", "8080"} {
		headers := http.Header{}
		headers.Set(corev1.PortHeader, port)
		headers.Set(corev1.PortForwardRequestIDHeader, fmt.Sprint(i))
		headers.Set(corev1.StreamType, corev1.StreamTypeError)
		failure, err := conn.CreateStream(headers)
		if err != nil {
			t.Fatal(err)
		}
		headers.Set(corev1.StreamType, corev1.StreamTypeData)
		data, err := conn.CreateStream(headers)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(data, "to port "+port)
		data.Close()
		if got, err := io.ReadAll(data); err != nil || string(got) != "to port "+port {
			t.Errorf("port %s: %q, %v", port, got, err)
		}
		if got, err := io.ReadAll(failure); err != nil || len(got) > 0 {
			t.Errorf("port %s: failure %q, %v", port, got, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Sort(ports); !slices.Equal(ports, []int32{80, 8080}) {
		t.Errorf("ports %v", ports)
	}
}

// TestStreamsAreRefused: a client without credentials gets no stream.
func TestStreamsAreRefused(t *testing.T) {
	h := serve(t)
	config := &rest.Config{Host: h.url, TLSClientConfig: rest.TLSClientConfig{CAData: h.pem()}}
	u, err := url.Parse(h.url + "/exec/default/web/main?command=true&output=1")
	if err != nil {
		t.Fatal(err)
	}
	e, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("without credentials: %v", err)
	}
}
