package cli

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

	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// execution is one command in a container, seen from here: the connection to the
// supervisor, and our ends of the pipes or of the terminal.
type execution struct {
	front    *front
	pod      store.Pod
	stdin    bool     // pass our standard input on
	terminal *os.File // ours, if the command gets one

	container string
	keys      []byte // leave the command behind
	detached  atomic.Bool

	conn *net.UnixConn
}

// run starts the command, passes everything on and returns its exit code.
func (x *execution) run(ctx context.Context, req wire.ExecRequest) (int, error) {
	stdin, outlets, theirs, err := x.pipes()
	defer closeAll(theirs)
	if err == nil {
		x.conn, err = ask(ctx, x.pod, wire.Request{Verb: wire.Exec, Exec: &req}, theirs...)
	}
	for _, o := range outlets {
		defer o.src.Close()
	}
	if err != nil {
		if stdin != nil {
			stdin.Close()
		}
		return 0, err
	}
	defer x.conn.Close()
	closeAll(theirs) // an end of ours would keep the command from seeing the end of its input
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
		stdin, outlets = master, []*outlet{{src: master, dst: x.front.out}}
	}
	if x.stdin {
		go x.feed(stdin)
	}
	code, err := x.attend(outlets)
	if x.detached.Load() {
		fmt.Fprintf(x.front.err, "\r\npodrun: detached; the command goes on in container %s of pod %s\r\n", x.container, x.pod.Name)
	}
	return code, err
}

// pipes makes the command's standard streams, unless it gets a terminal. theirs go
// to the supervisor.
func (x *execution) pipes() (stdin *os.File, outlets []*outlet, theirs []*os.File, err error) {
	if x.terminal != nil {
		return nil, nil, nil, nil
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	theirs = append(theirs, in)
	if !x.stdin {
		stdin.Close()
		stdin = nil
	}
	for _, dst := range []io.Writer{x.front.out, x.front.err} {
		r, w, err := os.Pipe()
		if err != nil {
			return stdin, outlets, theirs, fmt.Errorf("make pipe: %w", err)
		}
		theirs = append(theirs, w)
		outlets = append(outlets, &outlet{src: r, dst: dst})
	}
	return stdin, outlets, theirs, nil
}

// started waits for the command's start; a command with a terminal comes with the
// terminal's master.
func (x *execution) started() (*os.File, error) {
	frame, files, err := wire.ReadFrame(x.conn)
	switch {
	case err == nil && frame.Error != nil:
		err = wireError(frame.Error)
	case err == nil && (!frame.Started || x.terminal != nil && len(files) != 1):
		err = errors.New("the supervisor's answer is not one to exec")
	case err != nil:
		err = x.lost(err)
	}
	if err != nil || x.terminal == nil {
		closeAll(files)
		return nil, err
	}
	return pollable(files[0])
}

func (x *execution) lost(err error) error {
	return report.New(report.Internal, "the command was ended with it; the containers run on, and another supervisor takes over",
		"lost the supervisor of pod %s before the command ended: %w", x.pod.Name, err)
}

// takeTerminal lets the user's terminal speak to master and nobody else, until
// restore. Without our input the terminal stays as it is, so that Ctrl-C works.
func (x *execution) takeTerminal(master *os.File) (restore func(), err error) {
	if !x.stdin {
		return func() {}, nil
	}
	back, err := tty.Raw(x.terminal)
	if err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	resized, quiet := x.front.signals(syscall.SIGWINCH)
	go func() {
		for range resized {
			tty.Resize(master, x.terminal)
		}
	}()
	tty.Resize(master, x.terminal) // it may have changed since we asked
	return func() { quiet(); back() }, nil
}

// feed passes our standard input on. It is left behind when the command ends.
func (x *execution) feed(stdin *os.File) {
	if x.terminal == nil {
		io.Copy(stdin, x.front.in)
		stdin.Close()
		return
	}
	_, err := io.Copy(stdin, tty.NewDetachable(x.front.in, x.keys))
	if errors.Is(err, tty.ErrDetached) && wire.WriteControl(x.conn, wire.Control{Detach: true}) == nil {
		x.detached.Store(true)
		x.conn.Close()
	}
}

// attend passes output and signals on until the command has ended and everything
// it wrote has been shown.
func (x *execution) attend(outlets []*outlet) (int, error) {
	var all sync.WaitGroup
	errs := make([]error, len(outlets))
	for i, o := range outlets {
		all.Go(func() { errs[i] = o.copy() })
	}
	killed, quiet := x.passSignals()
	code, err := x.await()
	quiet()
	for _, o := range outlets {
		o.last()
	}
	all.Wait()
	select {
	case sig := <-killed:
		return 0, interrupted(sig)
	default:
		if x.detached.Load() {
			return 0, nil
		}
		return code, errors.Join(append(errs, err)...)
	}
}

// passSignals gives the command the signals we get. The second ends the
// connection, with which the supervisor ends the command.
func (x *execution) passSignals() (killed <-chan os.Signal, quiet func()) {
	arrived, quiet := x.front.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
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
	return last, quiet
}

// await reads frames up to the command's exit.
func (x *execution) await() (int, error) {
	for {
		frame, files, err := wire.ReadFrame(x.conn)
		closeAll(files)
		switch {
		case err != nil:
			return 0, x.lost(err)
		case frame.Error != nil:
			return 0, wireError(frame.Error)
		case frame.Exit != nil:
			return *frame.Exit, nil
		}
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
