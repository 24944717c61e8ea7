package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/podrun/podrun/internal/httpserver"
)

// The kubelet's limits of streams (streamingConnectionIdleTimeout, DefaultStreamCreationTimeout).
const (
	streamIdleTime     = 4 * time.Hour
	streamCreationTime = remotecommand.DefaultStreamCreationTimeout
)

// session is one request for streams of a pod. It implements the interfaces of the streaming library. The library
// passes names from the request to the methods; session knows them already.
type session struct {
	pods      Pods
	pod       *corev1.Pod
	container string
	command   []string
}

// ExecInContainer implements remotecommand.Executor.
func (s *session) ExecInContainer(ctx context.Context, _, _, _ string, _ []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	code, err := s.pods.Exec(ctx, s.pod, s.container, s.command, streams(ctx, in, out, errOut, tty, resize))
	if err == nil && code != 0 {
		err = utilexec.CodeExitError{Err: errors.New("the command has failed"), Code: code}
	}
	return err
}

// AttachContainer implements remotecommand.Attacher.
func (s *session) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.pods.Attach(ctx, s.pod, s.container, streams(ctx, in, out, errOut, tty, resize))
}

// PortForward implements portforward.PortForwarder.
func (s *session) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	return s.pods.PortForward(ctx, s.pod, port, stream)
}

// streams converts the streams of the library. Sizes are converted until ctx ends.
func streams(ctx context.Context, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) Streams {
	sizes := make(chan Size)
	go func() {
		defer close(sizes)
		for {
			select {
			case s, ok := <-resize:
				if !ok {
					return
				}
				select {
				case sizes <- Size{s.Width, s.Height}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return Streams{In: in, Out: out, Err: errOut, Terminal: tty, Sizes: sizes}
}

// newSession returns the session of a request. Otherwise it answers the request.
func (s *Server) newSession(w http.ResponseWriter, r *http.Request) (*session, bool) {
	p, container, ok := s.target(w, r)
	return &session{pods: s.Pods, pod: p, container: container, command: r.URL.Query()["command"]}, ok
}

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	x, ok := s.newSession(w, r)
	if !ok {
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err == nil && len(x.command) == 0 {
		err = errors.New("the request has no command")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer httpserver.HoldConn(r.Context())()
	remotecommand.ServeExec(w, r, x, "", "", "", nil, options, streamIdleTime, streamCreationTime, remotecommand.SupportedStreamingProtocols)
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	x, ok := s.newSession(w, r)
	if !ok {
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer httpserver.HoldConn(r.Context())()
	remotecommand.ServeAttach(w, r, x, "", "", "", options, streamIdleTime, streamCreationTime, remotecommand.SupportedStreamingProtocols)
}

func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	x, ok := s.newSession(w, r)
	if !ok {
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer httpserver.HoldConn(r.Context())()
	portforward.ServePortForward(w, r, x, "", "", options, streamIdleTime, streamCreationTime, portforward.SupportedProtocols)
}
