package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/podrun/podrun/internal/cli/internal/attach"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/logstream"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
)

// attachment connects the user with the container of a pod that has just been started.
type attachment struct {
	*options
	run       *podup.Run
	target    *podup.Target
	container *pod.Container
	signals   <-chan os.Signal

	last    *pod.Status     // the last status that was seen
	end     *pod.Terminated // how the container ended first; nil if it has not, or that is unknown
	failure *pod.Waiting    // why the container cannot be created
	missed  bool            // output was lost: its log was rotated too early
	stopped chan os.Signal  // receives the signal that has stopped the pod
}

// watch calls running when the container runs. It returns when the container has ended once, cannot be created,
// or with untilRunning when it runs.
func (a *attachment) watch(ctx context.Context, untilRunning bool, running func()) error {
	reporter := follow.Reporter{Out: a.env.ErrOut, Pod: a.target.Pod.Name}
	defer reporter.WatchMounts(a.target)()
	onStatus := func(st *pod.Status) bool {
		a.last = st
		c, ok := st.Container(a.container.Name)
		if !ok {
			return st.Phase.Terminal()
		}
		if a.end = c.LastState.Terminated; a.end == nil {
			a.end = c.State.Terminated
		}
		if w := c.State.Waiting; w != nil && strings.HasPrefix(w.Reason, "CreateContainer") {
			a.failure = w
		}
		if c.State.Running != nil {
			running()
		}
		enough := a.end != nil || a.failure != nil || st.Phase.Terminal()
		if !enough {
			reporter.Status(st)
		}
		return enough || untilRunning && c.State.Running != nil
	}
	_, err := podclient.Follow(ctx, a.target.Pod, onStatus)
	if a.detach && a.rm && errors.Is(err, fs.ErrNotExist) { // it has ended, and has removed itself
		return podclient.ErrNotRunning
	}
	return err
}

// awaitStart waits until the container of -d runs, and prints the pod's name.
func (a *attachment) awaitStart(ctx context.Context) error {
	err := cmdutil.Interruptible(ctx, a.signals, func(ctx context.Context) error { return a.watch(ctx, true, func() {}) })
	if status := exitcode.As(err); status != nil && status.Err == nil {
		fmt.Fprintf(a.env.ErrOut, "podrun: pod %[1]s keeps running; podrun down %[1]s removes it\n", a.target.Pod.Name)
	}
	if errors.Is(err, podclient.ErrNotRunning) { // it has ended, and has removed itself
		err = nil
	}
	if err == nil {
		err = a.startError(ctx)
	}
	if err == nil && a.end == nil && a.last != nil && a.last.Phase == pod.Failed {
		err = (&follow.Reporter{}).Failure(a.target.Pod, a.last)
	}
	if err == nil {
		follow.WarnOfLogout(a.env, a.run.Targets)
		_, err = fmt.Fprintln(a.env.Out, a.target.Pod.Name)
	}
	return err
}

// startError returns why the container was not started, or nil. It removes a pod that would go on trying.
func (a *attachment) startError(ctx context.Context) error {
	switch {
	case a.failure != nil:
		err := fmt.Errorf("cannot create the container: %s: %s", a.failure.Reason, a.failure.Message)
		return errors.Join(err, a.remove(ctx))
	case a.end != nil && a.end.Reason == "StartError":
		err := error(&exitcode.Error{Code: a.end.ExitCode, Err: fmt.Errorf("cannot start the container: %s", a.end.Message)})
		if a.detach && a.rm { // its supervisor keeps it, so that its status can be read
			err = errors.Join(err, a.remove(ctx))
		}
		return err
	}
	return nil
}

// remove stops and removes the pod.
func (a *attachment) remove(ctx context.Context) error {
	return podclient.Stop(context.WithoutCancel(ctx), a.target.Pod, podclient.StopOptions{Grace: new(int64), Remove: a.run.Launcher.Remove})
}

// foreground prints the container's output and passes on input and signals, until the container has ended.
// With --rm it then removes the pod.
func (a *attachment) foreground(ctx context.Context) error {
	// Otherwise the end of the output's reader would end podrun before it removes the pod.
	_, ignore := a.env.Signals(syscall.SIGPIPE)
	defer ignore()
	var err error
	detached := false
	if a.tty {
		detached, err = a.terminal(ctx)
	} else {
		err = a.streams(ctx)
	}
	if errors.Is(err, syscall.EPIPE) {
		err = &exitcode.Error{Code: exitcode.BrokenPipe}
	}
	switch {
	case a.rm && detached:
		fmt.Fprintf(a.env.ErrOut, "\npodrun: pod %[1]s is not removed at its end; podrun down %[1]s removes it\n", a.target.Pod.Name)
	case a.rm:
		err = errors.Join(err, a.remove(ctx))
	}
	return err
}

// result returns the error with the container's exit code.
func (a *attachment) result(ctx context.Context) error {
	if err := a.startError(ctx); err != nil {
		return err
	}
	switch {
	case a.end == nil:
		select {
		case sig := <-a.stopped:
			return exitcode.Interrupted(sig)
		default:
			return (&follow.Reporter{}).Failure(a.target.Pod, a.last)
		}
	case a.end.ExitCode != 0:
		return &exitcode.Error{Code: a.end.ExitCode}
	case a.missed:
		return &exitcode.Error{Code: exitcode.Internal}
	}
	return nil
}

// streams prints the output from the container's log, which loses nothing if the reader is slow. The input, if
// there is one, is passed on by an attachment, whose copy of the output is dropped.
func (a *attachment) streams(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go a.forwardSignals(ctx)
	if err := a.printLog(ctx, sync.OnceFunc(func() {
		if a.stdin {
			go a.feed(ctx)
		}
	})); err != nil {
		return err
	}
	return a.result(ctx)
}

// printLog prints the container's log until its first end.
func (a *attachment) printLog(ctx context.Context, running func()) error {
	stream := logstream.NewOne(a.container, false, newRawSink(a.env.Out, a.env.ErrOut))
	report := logstream.MissedLines(a.env, a.target.Pod.Name, a.container.Name)
	stream.Missed = func() { a.missed = true; report() }
	return logstream.FollowWhile(ctx, a.target.Pod, []*logstream.Stream{stream}, func(ctx context.Context) error {
		return a.watch(ctx, false, running)
	})
}

// feed passes on the input.
func (a *attachment) feed(ctx context.Context) {
	silent := *a.env
	silent.Out, silent.ErrOut = io.Discard, io.Discard
	silent.Signals = func(...os.Signal) (<-chan os.Signal, func()) { return nil, func() {} }
	input := attach.Session{Env: &silent, Pod: a.target.Pod, Container: a.container, Stdin: true, Quiet: true}
	_, _ = input.Run(ctx) // the log has the output, the status the exit code
}

// runs reports whether the container runs, by the pod's status. The status is read, because watch's last status
// may be older than the container's output.
func (a *attachment) runs() bool {
	st, err := a.target.Pod.Status()
	if err != nil {
		return false
	}
	c, ok := st.Container(a.container.Name)
	return ok && c.State.Running != nil
}

// forwardSignals passes signals to the container. The second SIGINT or SIGTERM stops the pod at once, and so
// does the first one before the container runs.
func (a *attachment) forwardSignals(ctx context.Context) {
	for ends := 0; ; {
		var sig syscall.Signal
		select {
		case <-ctx.Done():
			return
		case arrived, ok := <-a.signals:
			if !ok {
				return
			}
			sig, _ = arrived.(syscall.Signal)
		}
		if sig == syscall.SIGINT || sig == syscall.SIGTERM {
			ends++
			if !a.runs() {
				ends = 2
			}
		}
		var err error
		if ends > 1 {
			select {
			case a.stopped <- sig:
			default: // another one has
			}
			err = podclient.RequestStop(ctx, a.target.Pod, wire.StopRequest{GraceSeconds: new(int64)})
		} else {
			err = podclient.Request(ctx, a.target.Pod, wire.Request{Verb: wire.Kill, Kill: &wire.KillRequest{Containers: []string{a.container.Name}, Signal: int(sig)}})
		}
		if err != nil && !errors.Is(err, podclient.ErrNotRunning) && ctx.Err() == nil {
			a.env.Warn(fmt.Errorf("cannot pass on a signal: %w", err))
		}
	}
}

// terminal connects the user's terminal with the container's, which receives Ctrl-C as a key.
func (a *attachment) terminal(ctx context.Context) (detached bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go a.forwardSignals(ctx)
	if err := a.watch(ctx, true, func() {}); err != nil {
		return false, err
	}
	if a.end == nil && a.failure == nil {
		keys, _ := tty.ParseKeys(tty.DefaultDetachKeys)
		copied := *a.env
		copied.Signals = a.resizeSignals
		session := attach.Session{Env: &copied, Pod: a.target.Pod, Container: a.container, Stdin: a.stdin, FromStart: true, Keys: keys, Quiet: true}
		if a.stdin {
			session.Terminal, _ = tty.File(a.env.In)
		}
		code, err := session.Run(ctx)
		var refused *exitcode.Error
		switch {
		case session.Detached:
			return true, nil
		case errors.As(err, &refused) && refused.Err != nil, errors.Is(err, podclient.ErrNotRunning): // it has ended in the meantime: its log has the output
		case err != nil:
			return false, err
		case code != 0:
			return false, &exitcode.Error{Code: code}
		default:
			return false, nil
		}
	}
	if err := a.printLog(ctx, func() {}); err != nil {
		return false, err
	}
	return false, a.result(ctx)
}

// resizeSignals is Env.Signals for SIGWINCH only: the others are passed on, and do not end the attachment.
func (a *attachment) resizeSignals(list ...os.Signal) (<-chan os.Signal, func()) {
	if slices.Contains(list, os.Signal(syscall.SIGWINCH)) {
		return a.env.Signals(syscall.SIGWINCH)
	}
	return nil, func() {}
}

// rawSink is a crilog.Sink that writes the output as the container has written it.
type rawSink struct {
	streams map[string]*bufio.Writer
	last    *bufio.Writer // has what is not flushed
}

func newRawSink(out, errOut io.Writer) *rawSink {
	s := &rawSink{streams: map[string]*bufio.Writer{"stdout": bufio.NewWriterSize(out, 64<<10), "stderr": bufio.NewWriter(errOut)}}
	s.last = s.streams["stdout"]
	return s
}

// Entry writes a line, or a piece of one.
func (s *rawSink) Entry(e crilog.Entry) error {
	w := s.streams[e.Stream]
	if w != s.last {
		if err := s.last.Flush(); err != nil {
			return err
		}
		s.last = w
	}
	_, err := w.Write(e.Text)
	if err == nil && !e.Partial {
		err = w.WriteByte('\n')
	}
	return err
}

// Flush writes what is buffered.
func (s *rawSink) Flush() error { return s.last.Flush() }
