package runner

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/probe"
)

// podAddress is that of a pod without a network, by its /etc/hosts: what listens on localhost alone is
// not reached there, as a container on a cluster is not reached by the kubelet.
const podAddress = "127.0.1.1"

// probeTries is how often a probe that could not be asked is asked again before that
// is told (kubelet: maxProbeRetries in pkg/kubelet/prober).
const probeTries = 3

// lifetime ends what is asked of an instance when its process has ended.
type lifetime struct {
	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
}

func (l *lifetime) begin() context.Context {
	l.once.Do(func() { l.ctx, l.cancel = context.WithCancel(context.Background()) })
	return l.ctx
}

func (l *lifetime) end() {
	l.begin()
	l.cancel()
}

// asker asks the pod's servers, from inside its network.
func (e *engine) asker() *probe.Prober {
	e.asking.Do(func() {
		at := podAddress
		e.mu.Lock()
		if s := e.sandbox; s != nil && len(s.addresses()) > 0 {
			at = s.addresses()[0].String()
		}
		e.mu.Unlock()
		e.prober = probe.New(at, e.dialInPod)
	})
	return e.prober
}

// ask probes a container, or runs one of its hooks, beside the loop. An instance that
// has ended answers nothing: its end is on the way.
func (e *engine) ask(a lifecycle.Action) {
	defer e.work(-1)
	x := e.enter(a.Container)
	if x == nil {
		return
	}
	defer x.execs.Done()
	if x.attempt != a.Attempt {
		return
	}
	ev := lifecycle.Event{Kind: lifecycle.Probed, Container: a.Container, Attempt: a.Attempt, Probe: a.Probe}
	if a.Kind == lifecycle.RunHook {
		ev.Kind, ev.Hook = lifecycle.Hooked, a.Hook
		ev.Outcome, ev.Message = e.runHook(x, lifecycle.PlannedHook(x.plan, a.Hook), a.Reason)
	} else {
		ev.Outcome, ev.Message = e.runProbe(x, lifecycle.PlannedProbe(x.plan, a.Probe))
	}
	if x.life.begin().Err() == nil {
		e.emit(ev)
	}
}

// runProbe asks once, and again if that could not be done.
func (e *engine) runProbe(x *container, p *pod.Probe) (outcome lifecycle.Outcome, message string) {
	timeout := time.Duration(p.TimeoutSeconds) * time.Second
	defer e.probes.pass()()
	for range probeTries {
		if p.Exec != nil {
			outcome, message = x.probeExec(p.Exec, timeout)
		} else {
			outcome, message = e.asker().Ask(x.life.begin(), &p.Handler, timeout)
		}
		if outcome != lifecycle.Unknown {
			break
		}
	}
	return outcome, message
}

// runHook runs a hook to its end, or to the container's: nothing else limits it.
func (e *engine) runHook(x *container, h *pod.Handler, reason string) (lifecycle.Outcome, string) {
	ctx := x.life.begin()
	var err error
	switch {
	case h.Exec != nil:
		args := h.Exec
		if reason != "" {
			args = append(args[:len(args):len(args)], "--reason="+reason)
		}
		err = x.hookExec(args)
	case h.HTTP != nil:
		err = e.asker().Notify(ctx, h.HTTP, reason)
	case h.SleepSeconds != nil:
		select {
		case <-time.After(time.Duration(*h.SleepSeconds) * time.Second):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return lifecycle.Failure, err.Error()
	}
	return lifecycle.Success, ""
}

// dialInPod makes a connection that begins in the pod's network. Names are looked up
// as on the host.
func (e *engine) dialInPod(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := lookUp(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Control: e.sockets.control, KeepAlive: -1}
	var conn net.Conn
	for _, a := range addresses {
		conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return conn, err
}

func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	for i := range list {
		list[i] = list[i].Unmap()
	}
	return list, nil
}
