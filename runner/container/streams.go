package container

import (
	"fmt"
	"os"
	"slices"

	"github.com/opencontainers/runc/libcontainer"

	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// openLog opens the log of the instance.
func (x *Container) openLog(s *sandbox.Sandbox) (err error) {
	if x.Log, err = output.OpenLog(s.LogConfig(x.Plan.Name, x.Attempt), s.LineSink(x.Plan.Name)); err != nil {
		return err
	}
	x.Log.OnData = x.Broadcaster.Write
	if x.Plan.TTY {
		x.Log.LineTimeout = output.TypingTimeout
	}
	return nil
}

// stdio holds the container's ends of its standard streams. The supervisor closes them when the process
// runs.
type stdio struct {
	files   []*os.File
	console ExecStdio
}

func (e *stdio) close() {
	CloseFiles(e.files...)
	e.console.closeSockets()
}

// makeStdio makes the standard streams of a process that is to be started.
func (x *Container) makeStdio(h *handoff.Record, init *libcontainer.Process) (e stdio, err error) {
	if x.Plan.TTY {
		e.console, err = newConsole(init)
		return e, err
	}
	if x.Plan.Stdin {
		in, err := x.newInput(h)
		if err != nil {
			return e, err
		}
		e.files = append(e.files, in)
		init.Stdin = in
	}
	stdout, err := x.newOutput("stdout")
	if err != nil {
		return e, err
	}
	e.files = append(e.files, stdout)
	stderr, err := x.newOutput("stderr")
	if err != nil {
		return e, err
	}
	e.files = append(e.files, stderr)
	init.Stdout, init.Stderr = stdout, stderr
	return e, nil
}

// newOutput makes one of the container's outputs, and returns the container's end.
func (x *Container) newOutput(name string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make %s pipe: %w", name, err)
	}
	x.unreadOutputs = append(x.unreadOutputs, &output.Stream{Name: name, Pipe: r})
	return w, nil
}

// startCopy starts copying the container's outputs to the log. Pod init holds the read ends before the
// container writes anything: if the supervisor is killed, no process gets a broken pipe, and the next supervisor
// continues.
func (x *Container) startCopy(h *handoff.Record) error {
	for len(x.unreadOutputs) > 0 {
		s := x.unreadOutputs[0]
		x.unreadOutputs = x.unreadOutputs[1:]
		x.Log.AddStream(s)
		if err := h.PodInit.Watch(x.keptName(s.Name), s.Pipe); err != nil {
			return err
		}
	}
	return nil
}

// newInput makes the container's standard input and returns the container's end. The input stays open until
// closeInput.
func (x *Container) newInput(h *handoff.Record) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make stdin pipe: %w", err)
	}
	x.stdin = w
	if err := h.PodInit.Keep(x.keptName(stdinName), w); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// closeInput closes the container's standard input for good.
func (x *Container) closeInput(h *handoff.Record) {
	x.stdinMu.Lock()
	defer x.stdinMu.Unlock()
	if x.stdin != nil {
		x.stdin.Close()
		x.stdin = nil
		h.PodInit.Drop(x.keptName(stdinName))
	}
}

// Names of the descriptors that pod init holds for a container beside its outputs: see keptName.
const (
	stdinName   = "stdin"
	masterName  = "tty"     // output.Terminal's Master
	peerName    = "peer"    // its Peer
	logPipeName = "logpipe" // its LogPipe
)

// takeTerminal receives the terminal of the container's process.
func (x *Container) takeTerminal(h *handoff.Record, e stdio) error {
	if !x.Plan.TTY {
		return nil
	}
	master, err := receiveMaster(e.console.local)
	if err != nil {
		return err
	}
	into, err := x.Log.Pipe("stdout")
	if err != nil {
		master.Close()
		return err
	}
	if x.terminal, err = output.OpenTerminal(master, into); err != nil {
		CloseFiles(master, into)
		return err
	}
	for _, keep := range []struct {
		name string
		file *os.File
	}{{"stdout", x.Log.Streams[0].Pipe}, {logPipeName, into}, {peerName, x.terminal.Peer}} {
		if err := h.PodInit.Keep(x.keptName(keep.name), keep.file); err != nil {
			return err
		}
	}
	if err := h.PodInit.Watch(x.keptName(masterName), x.terminal.Master); err != nil {
		return err
	}
	x.startTerminal(h)
	return nil
}

// startTerminal starts copying the terminal's output to the log. A terminal at end of file must not wake a
// supervisor.
func (x *Container) startTerminal(h *handoff.Record) {
	x.terminal.OnEnd = func() {
		if err := h.PodInit.Keep(x.keptName(masterName), x.terminal.Master); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	x.terminal.Start()
}

// closeStreams copies the remaining output of the container, whose processes are gone, to the log, and
// makes pod init close the descriptors.
func (x *Container) closeStreams(h *handoff.Record) {
	for _, s := range x.unreadOutputs {
		s.Pipe.Close()
	}
	x.unreadOutputs = nil
	if x.Log == nil {
		return
	}
	if x.terminal != nil {
		for _, name := range []string{peerName, logPipeName} {
			h.PodInit.Drop(x.keptName(name))
		}
		x.terminal.Finish()
		h.PodInit.Drop(x.keptName(masterName))
	}
	x.closeInput(h)
	x.Log.WritersGone()
	x.Log.Drain()
	for _, s := range x.Log.Streams {
		h.PodInit.Drop(x.keptName(s.Name))
	}
}

// keptName returns the name under which pod init holds one of the container's streams.
func (x *Container) keptName(stream string) string { return x.ID() + "." + stream }

// SuspendOutput stops reading the container's outputs.
func (x *Container) SuspendOutput() {
	if x.terminal != nil {
		x.terminal.Suspend()
	}
	x.Log.Suspend()
}

// ContinueOutput continues where SuspendOutput has stopped.
func (x *Container) ContinueOutput(h *handoff.Record) {
	x.Log.Continue()
	if x.terminal != nil {
		x.startTerminal(h)
	}
}

// SaveStreams returns the state of the outputs of a container whose log is suspended. An output at end of file
// must not wake the next supervisor.
func (x *Container) SaveStreams(h *handoff.Record) (streams []handoff.Stream) {
	for _, s := range x.Log.Streams {
		if s.Ended {
			h.PodInit.Drop(x.keptName(s.Name))
			continue
		}
		streams = append(streams, handoff.Stream{Name: s.Name, Rest: s.Rest})
	}
	return streams
}

// recoverStreams continues to read a container's standard streams where an earlier supervisor stopped.
func (x *Container) recoverStreams(s *sandbox.Sandbox, saved []handoff.Stream, take func(name string) (*os.File, bool)) (err error) {
	if err := x.openLog(s); err != nil {
		return err
	}
	x.stdin, _ = take(x.keptName(stdinName))
	var streams []*output.Stream
	for _, name := range []string{"stdout", "stderr"} {
		pipe, ok := take(x.keptName(name))
		if !ok {
			continue // end of file was reached
		}
		st := &output.Stream{Name: name, Pipe: pipe}
		if i := slices.IndexFunc(saved, func(s handoff.Stream) bool { return s.Name == name }); i >= 0 {
			st.Rest = saved[i].Rest
		}
		streams = append(streams, st)
	}
	if err := x.Log.Recover(streams...); err != nil {
		return err
	}
	return x.recoverTerminal(s.Handoff, take)
}

// recoverTerminal takes over a container's terminal.
func (x *Container) recoverTerminal(h *handoff.Record, take func(name string) (*os.File, bool)) error {
	t := &output.Terminal{}
	missing := false
	for name, file := range map[string]**os.File{masterName: &t.Master, peerName: &t.Peer, logPipeName: &t.LogPipe} {
		var ok bool
		*file, ok = take(x.keptName(name))
		missing = missing || !ok
	}
	if missing { // it has none, or the terminal was closed
		CloseFiles(t.Master, t.Peer, t.LogPipe)
		return nil
	}
	x.terminal = t
	x.startTerminal(h)
	return nil
}

// CloseFiles closes the files that are not nil.
func CloseFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// labelStreams gives a process's input and output the SELinux label of its container's files.
func (x *Container) labelStreams(p *libcontainer.Process) error {
	for _, stream := range []any{p.Stdin, p.Stdout, p.Stderr} {
		if f, ok := stream.(*os.File); ok {
			if err := volumes.LabelPipe(f, x.Plan.FileLabel); err != nil {
				return err
			}
		}
	}
	return nil
}
