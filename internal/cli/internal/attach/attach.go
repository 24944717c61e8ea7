// Package attach connects the user's streams with a running container's.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Session is an attachment to a running container. It survives the end of supervisors.
type Session struct {
	Env       *cmdutil.Env
	Pod       store.Pod
	Container *pod.Container
	Stdin     bool
	FromStart bool     // the next supervisor sends earlier output too
	Terminal  *os.File // the user's, if the container has one and gets input
	Keys      []byte   // that detach
	// Sizes returns the next size of the terminal, in characters, of a client that has the terminal on another host; ok is
	// false after the last one. It is nil for others.
	Sizes func() (cols, rows uint16, ok bool)
	Quiet bool // print nothing but the output of the container

	Detached bool // the user has detached

	killed <-chan os.Signal
	input  atomic.Pointer[os.File] // the container's input, or nil
	left   chan error              // the local input has ended the attachment: nil, or tty.ErrDetached
}

// outputPipeSize is the size of the pipe that buffers a container's output. When it is full, output is
// lost.
const outputPipeSize = 1 << 20

// Run stays attached until the container ends and returns its exit code, or until the user detaches.
func (a *Session) Run(ctx context.Context) (code int, err error) {
	a.left = make(chan error, 1)
	var ignore func()
	a.killed, ignore = a.Env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer ignore()
	restore := func() {}
	defer func() { restore() }()
	for again := false; ; again = true {
		conn, err := a.join(ctx)
		if err != nil {
			return 0, err
		}
		if !again {
			if restore, err = a.begin(); err != nil {
				conn.Close()
				return 0, err
			}
		} else if !a.Quiet {
			fmt.Fprintf(a.Env.ErrOut, "podrun: lost the supervisor of pod %s, another one has started; podrun logs %[1]s shows output that may be missing here%s\n", a.Pod.Name, a.eol())
		}
		code, err := a.forward(ctx, conn)
		switch {
		case errors.Is(err, tty.ErrDetached):
			restore()
			a.Detached = true
			if !a.Quiet {
				fmt.Fprintf(a.Env.ErrOut, "\npodrun: detached; container %s of pod %s keeps running\n", a.Container.Name, a.Pod.Name)
			}
			return 0, nil
		case !podclient.IsHangup(err) || !a.Pod.Alive():
			return code, err
		}
	}
}

// eol returns what a message needs before its newline: a carriage return if the terminal is in raw mode.
func (a *Session) eol() string {
	if a.Terminal != nil {
		return "\r"
	}
	return ""
}

// attachConn is a connection with the files that came with it.
type attachConn struct {
	*net.UnixConn
	outputs []*podclient.OutputStream
}

// join requests the attachment, and repeats that until a supervisor answers.
func (a *Session) join(ctx context.Context) (j *attachConn, err error) {
	err = podclient.Retry(ctx, a.Pod, func() error {
		j, err = a.joinOnce(ctx)
		return err
	})
	return j, err
}

func (a *Session) joinOnce(ctx context.Context) (j *attachConn, err error) {
	j = &attachConn{}
	var theirs []*os.File
	defer func() {
		podclient.CloseAll(theirs)
		if err != nil {
			j.Close()
		}
	}()
	for _, dst := range []io.Writer{a.Env.Out, a.Env.ErrOut}[:1+cmdutil.BoolToInt(!a.Container.TTY)] {
		r, w, err := os.Pipe()
		if err != nil {
			return j, fmt.Errorf("make pipe: %w", err)
		}
		unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, outputPipeSize) // if it fails, the smaller pipe is used
		theirs = append(theirs, w)
		j.outputs = append(j.outputs, &podclient.OutputStream{Src: r, Dst: dst})
	}
	req := wire.AttachRequest{Container: a.Container.Name, Stdin: a.Stdin, FromStart: a.FromStart}
	if j.UnixConn, err = podclient.Send(ctx, a.Pod, wire.Request{Verb: wire.Attach, Attach: &req}, theirs...); err != nil {
		return j, err
	}
	frame, files, err := wire.ReadFrame(j.UnixConn)
	switch {
	case err == nil && frame.Error != nil:
		err = podclient.ResponseError(frame.Error)
	case err == nil && (!frame.Started || len(files) > 1):
		err = errors.New("unexpected reply of the supervisor to attach")
	}
	if err != nil {
		podclient.CloseAll(files)
		return j, err
	}
	a.FromStart = false
	if len(files) == 1 { // feed may still write to the old one
		a.input.Store(files[0])
	}
	return j, nil
}

func (j *attachConn) Close() {
	if j.UnixConn != nil {
		j.UnixConn.Close()
	}
	for _, o := range j.outputs {
		o.Src.Close()
	}
}

// begin forwards input until restore is called.
func (a *Session) begin() (restore func(), err error) {
	restore = func() {}
	if a.Terminal != nil {
		if restore, err = a.takeTerminal(); err != nil {
			return nil, err
		}
		if !a.Quiet {
			fmt.Fprint(a.Env.ErrOut, "If you don't see a command prompt, try pressing enter.\r\n") // kubectl's words
		}
	}
	if a.Stdin {
		go a.feed()
	}
	if a.Sizes != nil && a.input.Load() != nil {
		go tty.FollowSizes(a.input.Load, a.Sizes)
	}
	return restore, nil
}

// takeTerminal forwards the user's keys and terminal size to the container's terminal. It first sets a
// different size for a moment, so that the program redraws its screen for the new client, as kubectl
// does.
func (a *Session) takeTerminal() (restore func(), err error) {
	back, err := tty.Raw(a.Terminal)
	if err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	resized, stop := a.Env.Signals(syscall.SIGWINCH)
	tty.ResizeBy(a.input.Load(), a.Terminal, 1)
	tty.Resize(a.input.Load(), a.Terminal)
	go func() {
		for range resized {
			tty.Resize(a.input.Load(), a.Terminal)
		}
	}()
	return sync.OnceFunc(func() { stop(); back() }), nil
}

// feed forwards input until it ends. It keeps running when the container ends.
func (a *Session) feed() {
	in := io.Reader(a.Env.In)
	if a.Terminal != nil {
		in = tty.NewDetachable(in, a.Keys)
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if _, werr := a.input.Load().Write(buf[:n]); werr != nil {
				return // the container no longer reads input; if it has ended, its exit arrives separately
			}
		}
		switch {
		case errors.Is(err, tty.ErrDetached):
			a.left <- err
			return
		case err != nil:
			a.left <- nil
			return
		}
	}
}

// forward prints the container's output until the container ends or the user detaches.
func (a *Session) forward(ctx context.Context, j *attachConn) (code int, err error) {
	defer j.Close()
	defer context.AfterFunc(ctx, func() { j.UnixConn.Close() })()
	var all sync.WaitGroup
	errs := make([]error, len(j.outputs))
	for i, o := range j.outputs {
		all.Go(func() { errs[i] = o.Copy() })
	}
	answered := make(chan struct{})
	var end error
	go func() {
		defer close(answered)
		code, end = j.end()
	}()
	for done := false; !done; {
		select {
		case <-answered:
			err, done = end, true
		case sig := <-a.killed:
			err, done = exitcode.Interrupted(sig), true
		case err = <-a.left:
			// If the manifest requests it (stdinOnce), the end of the local input ends the container's input;
			// otherwise it only ends the attachment (containerd: internal/cri/io).
			if once := a.Container.StdinOnce && !a.Container.TTY; err == nil && once {
				a.input.Load().Close()
				// An error means that the container has ended, and its exit arrives separately.
				wire.WriteControl(j.UnixConn, wire.Control{EOF: true})
				continue
			}
			done = true
		}
	}
	j.hangUp()
	<-answered
	all.Wait()
	if err == nil {
		err = errors.Join(errs...)
	}
	return code, err
}

// end waits for the container's end.
func (j *attachConn) end() (code int, err error) {
	frame, files, err := wire.ReadFrame(j.UnixConn)
	podclient.CloseAll(files)
	switch {
	case err == nil && frame.Exit != nil:
		return *frame.Exit, nil
	case err == nil:
		err = errors.New("unexpected reply of the supervisor to attach")
	}
	return 0, err
}

// hangUp closes the connection; output that was already written is still printed.
func (j *attachConn) hangUp() {
	j.UnixConn.Close()
	for _, o := range j.outputs {
		o.Drain()
	}
}
