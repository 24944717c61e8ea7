package podclient

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

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Command is one command in a container, on the client's side: the connection to the supervisor, and the
// local ends of the pipes or of the terminal.
type Command struct {
	Pod       store.Pod
	Container string
	Stdin     bool     // forward In
	Terminal  *os.File // the user's terminal, if the command gets one
	Keys      []byte   // detach keys
	// Sizes returns the next size of the terminal, in characters, of a client that has the terminal on another host; ok is
	// false after the last one. It is nil for others.
	Sizes func() (cols, rows uint16, ok bool)

	In       io.Reader
	Out, Err io.Writer
	Signals  func(...os.Signal) (arrived <-chan os.Signal, stop func()) // Signals

	detached atomic.Bool
	conn     *net.UnixConn
}

// Run starts the command, forwards its streams and returns its exit code.
func (x *Command) Run(ctx context.Context, req wire.ExecRequest) (int, error) {
	stdin, outputs, remote, err := x.pipes()
	defer CloseAll(remote)
	if err == nil {
		x.conn, err = Send(ctx, x.Pod, wire.Request{Verb: wire.Exec, Exec: &req}, remote...)
	}
	for _, o := range outputs {
		defer o.Src.Close()
	}
	if err != nil {
		if stdin != nil {
			stdin.Close()
		}
		return 0, err
	}
	defer x.conn.Close()
	defer context.AfterFunc(ctx, func() { x.conn.Close() })() // the supervisor kills the command
	CloseAll(remote)                                          // a copy kept here would keep the command from seeing the end of its input
	master, err := x.started()
	if err != nil {
		if stdin != nil {
			stdin.Close()
		}
		return 0, err
	}
	if master != nil {
		defer master.Close()
		restore, err := x.takeTerminal(master)
		if err != nil {
			return 0, err
		}
		defer restore()
		stdin, outputs = master, []*OutputStream{{Src: master, Dst: x.Out}}
	}
	if x.Stdin {
		go x.feed(stdin)
	}
	code, err := x.forward(outputs)
	if x.detached.Load() {
		fmt.Fprintf(x.Err, "\r\npodrun: detached; the command keeps running in container %s of pod %s\r\n", x.Container, x.Pod.Name)
	}
	return code, err
}

// ExitError returns the error of a podrun command that ends with the exit code of a program in a container.
func ExitError(verb string, p store.Pod, code int, err error) error {
	switch {
	case errors.Is(err, ErrNotRunning):
		return report.New(report.Internal, "podrun ps shows its state", "cannot %s pod %q: it is not running", verb, p.Name)
	case err != nil:
		return err
	case code != 0:
		return &exitcode.Error{Code: code}
	}
	return nil
}

// hasTerminal reports whether the command gets a terminal.
func (x *Command) hasTerminal() bool { return x.Terminal != nil || x.Sizes != nil }

// pipes makes the command's standard streams, unless it gets a terminal. remote are the ends for the supervisor.
func (x *Command) pipes() (stdin *os.File, outputs []*OutputStream, remote []*os.File, err error) {
	if x.hasTerminal() {
		return nil, nil, nil, nil
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	remote = append(remote, in)
	if !x.Stdin {
		stdin.Close()
		stdin = nil
	}
	for _, dst := range []io.Writer{x.Out, x.Err} {
		r, w, err := os.Pipe()
		if err != nil {
			return stdin, outputs, remote, fmt.Errorf("make pipe: %w", err)
		}
		remote = append(remote, w)
		outputs = append(outputs, &OutputStream{Src: r, Dst: dst})
	}
	return stdin, outputs, remote, nil
}

// started waits for the start of the command. For a command with a terminal it returns the terminal's
// master.
func (x *Command) started() (*os.File, error) {
	frame, files, err := wire.ReadFrame(x.conn)
	switch {
	case err == nil && frame.Error != nil:
		err = ResponseError(frame.Error)
	case err == nil && (!frame.Started || x.hasTerminal() && len(files) != 1):
		err = errors.New("unexpected reply of the supervisor to exec")
	case err != nil:
		err = x.lost(err)
	}
	if err != nil || !x.hasTerminal() {
		CloseAll(files)
		return nil, err
	}
	return pollable(files[0])
}

func (x *Command) lost(err error) error {
	return report.New(report.Internal, "the command was killed; the containers keep running",
		"lost the supervisor of pod %s before the command ended: %w", x.Pod.Name, err)
}

// takeTerminal puts the user's terminal into raw mode and passes its size to master, until restore. If input
// is not forwarded the terminal stays as it is, so that Ctrl-C works.
func (x *Command) takeTerminal(master *os.File) (restore func(), err error) {
	if x.Sizes != nil {
		go tty.FollowSizes(func() *os.File { return master }, x.Sizes)
		return func() {}, nil
	}
	if !x.Stdin {
		return func() {}, nil
	}
	back, err := tty.Raw(x.Terminal)
	if err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	resized, stop := x.Signals(syscall.SIGWINCH)
	go func() {
		for range resized {
			tty.Resize(master, x.Terminal)
		}
	}()
	tty.Resize(master, x.Terminal) // the size may have changed since the request
	return func() { stop(); back() }, nil
}

// feed forwards standard input. It keeps running when the command ends.
func (x *Command) feed(stdin *os.File) {
	if x.Terminal == nil {
		io.Copy(stdin, x.In)
		if x.Sizes == nil { // the end of the input does not end a terminal
			stdin.Close()
		}
		return
	}
	_, err := io.Copy(stdin, tty.NewDetachable(x.In, x.Keys))
	if errors.Is(err, tty.ErrDetached) && wire.WriteControl(x.conn, wire.Control{Detach: true}) == nil {
		x.detached.Store(true)
		x.conn.Close()
	}
}

// forward forwards output and signals until the command has ended and all of its output has been printed.
func (x *Command) forward(outputs []*OutputStream) (int, error) {
	var all sync.WaitGroup
	errs := make([]error, len(outputs))
	for i, o := range outputs {
		all.Go(func() { errs[i] = o.Copy() })
	}
	killed, stop := x.passSignals()
	code, err := x.await()
	stop()
	for _, o := range outputs {
		o.Drain()
	}
	all.Wait()
	select {
	case sig := <-killed:
		return 0, exitcode.Interrupted(sig)
	default:
		if x.detached.Load() {
			return 0, nil
		}
		return code, errors.Join(append(errs, err)...)
	}
}

// passSignals forwards signals to the command. The second one closes the connection, upon which the
// supervisor kills the command.
func (x *Command) passSignals() (killed <-chan os.Signal, stop func()) {
	arrived, stop := x.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	last := make(chan os.Signal, 1)
	go func() {
		for n := 0; ; n++ {
			sig, ok := <-arrived
			if !ok {
				return
			}
			number, isUnix := sig.(syscall.Signal)
			if n == 0 && isUnix && wire.WriteControl(x.conn, wire.Control{Signal: int(number)}) == nil {
				continue
			}
			last <- sig
			x.conn.Close()
			return
		}
	}()
	return last, stop
}

// await reads frames until the command's exit.
func (x *Command) await() (int, error) {
	for {
		frame, files, err := wire.ReadFrame(x.conn)
		CloseAll(files)
		switch {
		case err != nil:
			return 0, x.lost(err)
		case frame.Error != nil:
			return 0, ResponseError(frame.Error)
		case frame.Exit != nil:
			return *frame.Exit, nil
		}
	}
}

// CloseAll closes files.
func CloseAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
