package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/cli/internal/attach"
	"github.com/podrun/podrun/internal/cli/internal/logstream"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podmetrics"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/node/server"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// reach reaches into the node's pods for the kubelet's API.
type reach struct {
	*node.Agent
	engine  *engine
	metrics *podmetrics.Collector
}

// find returns the pod on this host. A pod of the user that has its name is another one.
func (r *reach) find(p *corev1.Pod) (store.Pod, *pod.Plan, error) {
	local := r.engine.dirs.Pod(p.Namespace, p.Name)
	plan, err := local.Plan()
	if errors.Is(err, fs.ErrNotExist) || err == nil && plan.UID != string(p.UID) {
		err = fmt.Errorf("pod %q is waiting to start", p.Name)
	}
	return local, plan, err
}

// container returns a container of the pod on this host.
func (r *reach) container(p *corev1.Pod, name string) (store.Pod, *pod.Plan, *pod.Container, error) {
	local, plan, err := r.find(p)
	if err != nil {
		return local, nil, nil, err
	}
	c, err := podclient.Named(plan, name)
	return local, plan, c, err
}

// uidOf returns the UID of a pod of this host that is from the cluster.
func (r *reach) uidOf(p store.Pod) (string, bool) {
	plan, err := p.Plan()
	if err != nil || r.Find(p.Namespace, p.Name, types.UID(plan.UID)) == nil {
		return "", false
	}
	return plan.UID, true
}

// Metrics implements server.Pods.
func (r *reach) Metrics() ([]byte, error) {
	return r.metrics.Usage(func(p store.Pod) bool {
		_, ok := r.uidOf(p)
		return ok
	})
}

// AgentMetrics implements server.Pods.
func (r *reach) AgentMetrics() ([]byte, error) {
	k := podmetrics.Kubelet{NodeName: r.Node.Name, Containers: map[string]int{"running": 0, "exited": 0}, Counts: r.Counts()}
	for _, p := range r.List() {
		local, err := r.engine.Find(p.Namespace, p.Name)
		if err != nil {
			return nil, err
		}
		if local == nil || local.UID != p.UID {
			continue
		}
		if local.Alive {
			k.RunningPods++
		}
		st := local.Pod.Status
		for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses, st.EphemeralContainerStatuses) {
			switch {
			case c.State.Running != nil:
				k.Containers["running"]++
			case c.State.Terminated != nil || c.LastTerminationState.Terminated != nil:
				k.Containers["exited"]++
			}
		}
	}
	return k.Text(), nil
}

// ProbeMetrics implements server.Pods.
func (r *reach) ProbeMetrics() ([]byte, error) { return r.metrics.Probes(r.uidOf) }

// Summary implements server.Pods.
func (r *reach) Summary() ([]byte, error) {
	s, err := r.metrics.Summary(r.Node.Name, r.uidOf)
	if s == nil {
		return nil, err
	}
	return json.Marshal(s) // without what cannot be read: the format has no place for errors
}

// Logs implements server.Pods.
func (r *reach) Logs(ctx context.Context, p *corev1.Pod, container string, o *corev1.PodLogOptions, out io.Writer) error {
	local, plan, c, err := r.container(p, container)
	if err != nil {
		return err
	}
	noEnv := func(string) string { return "" }
	sink := podview.NewLogWriter(out, noEnv, o.Timestamps, true).Plain()
	if o.Stream != nil && *o.Stream != corev1.LogStreamAll {
		sink = &oneStream{sink, *o.Stream == corev1.LogStreamStderr}
	}
	if o.LimitBytes != nil {
		sink = podview.Limited(sink, *o.LimitBytes, o.Timestamps)
	}
	s := logstream.NewOne(c, logstream.IsInit(plan, c.Name), sink)
	s.Tail = -1
	if o.TailLines != nil {
		s.Tail = int(*o.TailLines)
	}
	switch {
	case o.SinceTime != nil:
		s.Since = o.SinceTime.Time
	case o.SinceSeconds != nil && *o.SinceSeconds < int64(math.MaxInt64/time.Second):
		s.Since = time.Now().Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	s.Missed = func() {}
	if o.Follow && !o.Previous {
		return logstream.FollowPod(ctx, local, plan, []*logstream.Stream{s})
	}
	st, err := podview.StatusOf(local)
	if err != nil {
		return err
	}
	return s.Print(local, st, o.Previous)
}

// oneStream passes on what a container writes to one of its two streams.
type oneStream struct {
	crilog.Sink
	stderr bool
}

func (s *oneStream) Entry(e crilog.Entry) error {
	if (e.Stream == "stderr") != s.stderr {
		return nil
	}
	return s.Sink.Entry(e)
}

// writer returns w, or a writer to nothing.
func writer(w io.Writer, present bool) io.Writer {
	if !present {
		return io.Discard
	}
	return w
}

// sizes returns the sizes of a client's terminal; nil if it has none.
func sizes(s *server.Streams) func() (cols, rows uint16, ok bool) {
	if !s.Terminal {
		return nil
	}
	return func() (uint16, uint16, bool) {
		size, ok := <-s.Sizes
		return size.Width, size.Height, ok
	}
}

// noSignals is podclient.Signals of a process without signals: the agent's signals are not for commands in containers.
func noSignals(...os.Signal) (arrived <-chan os.Signal, stop func()) {
	c := make(chan os.Signal)
	return c, sync.OnceFunc(func() { close(c) })
}

// Exec implements server.Pods.
func (r *reach) Exec(ctx context.Context, p *corev1.Pod, container string, command []string, s server.Streams) (int, error) {
	local, _, c, err := r.container(p, container)
	if err != nil {
		return 0, err
	}
	x := &podclient.Command{
		Pod: local, Container: c.Name, Stdin: s.In != nil, Sizes: sizes(&s), Signals: noSignals,
		In: s.In, Out: writer(s.Out, s.Out != nil), Err: writer(s.Err, s.Err != nil),
	}
	return x.Run(ctx, wire.ExecRequest{Container: c.Name, Args: command, TTY: s.Terminal, Term: "xterm"})
}

// Attach implements server.Pods.
func (r *reach) Attach(ctx context.Context, p *corev1.Pod, container string, s server.Streams) error {
	local, _, c, err := r.container(p, container)
	if err != nil {
		return err
	}
	env := *r.engine.env
	env.In, env.Out, env.ErrOut, env.Signals = s.In, writer(s.Out, s.Out != nil), writer(s.Err, s.Err != nil), noSignals
	a := &attach.Session{Env: &env, Pod: local, Container: c, Stdin: s.In != nil, Sizes: sizes(&s), Quiet: true}
	_, err = a.Run(ctx)
	return err
}

// PortForward implements server.Pods.
func (r *reach) PortForward(_ context.Context, p *corev1.Pod, port int32, stream io.ReadWriteCloser) error {
	local, _, err := r.find(p)
	if err != nil {
		return err
	}
	conn, err := podclient.Connect(local, int(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		io.Copy(conn, stream)
		conn.CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	stream.Close()
	<-sent
	return err
}
