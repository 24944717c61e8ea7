package runner

import (
	"fmt"
	"os"
	"slices"

	"github.com/opencontainers/runc/libcontainer"

	"github.com/podrun/podrun/volumes"
)

// openLog opens the log of the instance.
func (x *container) openLog(s *sandbox) (err error) {
	if x.log, err = openLog(s.logPlace(x.plan.Name, x.attempt), s.shower(x.plan.Name)); err != nil {
		return err
	}
	x.log.hear = x.audience.hear
	if x.plan.TTY {
		x.log.patience = typingWait
	}
	return nil
}

// streamEnds are the container's ends of its standard streams, which are ours until its process runs.
type streamEnds struct {
	files   []*os.File
	console attachment
}

func (e *streamEnds) close() {
	closeFiles(e.files...)
	e.console.close()
}

// streams gives the process that is to be started its standard streams.
func (x *container) streams(left *estate, init *libcontainer.Process) (e streamEnds, err error) {
	if x.plan.TTY {
		e.console, err = console(init)
		return e, err
	}
	if x.plan.Stdin {
		in, err := x.input(left)
		if err != nil {
			return e, err
		}
		e.files = append(e.files, in)
		init.Stdin = in
	}
	stdout, err := x.output("stdout")
	if err != nil {
		return e, err
	}
	e.files = append(e.files, stdout)
	stderr, err := x.output("stderr")
	if err != nil {
		return e, err
	}
	e.files = append(e.files, stderr)
	init.Stdout, init.Stderr = stdout, stderr
	return e, nil
}

// output makes one of the container's outputs, and returns the container's end.
func (x *container) output(name string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make %s pipe: %w", name, err)
	}
	x.outputs = append(x.outputs, &stream{name: name, pipe: r})
	return w, nil
}

// copyOutputs lets the container's outputs go to the log. The keeper has our ends before
// anything is written: a supervisor that is killed leaves nobody with a broken pipe, and its
// successor goes on.
func (x *container) copyOutputs(left *estate) error {
	for len(x.outputs) > 0 {
		s := x.outputs[0]
		x.outputs = x.outputs[1:]
		x.log.take(s)
		if err := left.keeper.Watch(x.pipeName(s.name), s.pipe); err != nil {
			return err
		}
	}
	return nil
}

// input makes the container's standard input, which is open until somebody ends it, and
// returns the container's end.
func (x *container) input(left *estate) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make stdin pipe: %w", err)
	}
	x.stdin = w
	if err := left.keeper.Keep(x.pipeName(stdinName), w); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// endInput closes the container's standard input for good.
func (x *container) endInput(left *estate) {
	x.inputs.Lock()
	defer x.inputs.Unlock()
	if x.stdin != nil {
		x.stdin.Close()
		x.stdin = nil
		left.keeper.Drop(x.pipeName(stdinName))
	}
}

// What the keeper has of a container beside its outputs: see pipeName.
const (
	stdinName  = "stdin"
	masterName = "tty"
	peerName   = "peer"
	intoName   = "into"
)

// takeTerminal takes the terminal that the container's process has got.
func (x *container) takeTerminal(left *estate, e streamEnds) error {
	if !x.plan.TTY {
		return nil
	}
	master, err := receiveMaster(e.console.ours)
	if err != nil {
		return err
	}
	into, err := x.log.pipe("stdout")
	if err != nil {
		master.Close()
		return err
	}
	if x.terminal, err = openTerminal(master, into); err != nil {
		closeFiles(master, into)
		return err
	}
	for _, keep := range []struct {
		name string
		file *os.File
	}{{"stdout", x.log.streams[0].pipe}, {intoName, into}, {peerName, x.terminal.peer}} {
		if err := left.keeper.Keep(x.pipeName(keep.name), keep.file); err != nil {
			return err
		}
	}
	if err := left.keeper.Watch(x.pipeName(masterName), x.terminal.master); err != nil {
		return err
	}
	x.beginTerminal(left)
	return nil
}

// beginTerminal has what the terminal says carried to the log. One that says nothing any
// more must not wake a supervisor.
func (x *container) beginTerminal(left *estate) {
	x.terminal.onEnd = func() {
		if err := left.keeper.Keep(x.pipeName(masterName), x.terminal.master); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	x.terminal.begin()
}

// closeStreams brings what the container's processes, which are gone, have written to the
// log, and lets the keeper close what it has of them.
func (x *container) closeStreams(left *estate) {
	for _, s := range x.outputs {
		s.pipe.Close()
	}
	x.outputs = nil
	if x.log == nil {
		return
	}
	if x.terminal != nil {
		for _, name := range []string{peerName, intoName} {
			left.keeper.Drop(x.pipeName(name))
		}
		x.terminal.finish()
		left.keeper.Drop(x.pipeName(masterName))
	}
	x.endInput(left)
	x.log.finish()
	x.log.drain()
	for _, s := range x.log.streams {
		left.keeper.Drop(x.pipeName(s.name))
	}
}

// pipeName is what the keeper calls one of the container's streams.
func (x *container) pipeName(stream string) string { return x.id() + "." + stream }

// pause leaves what the container writes where it is.
func (x *container) pause() {
	if x.terminal != nil {
		x.terminal.pause()
	}
	x.log.pause()
}

// resume goes on where pause has stopped.
func (x *container) resume(left *estate) {
	x.log.resume()
	if x.terminal != nil {
		x.beginTerminal(left)
	}
}

// quietOutputs are the outputs of a container whose log is paused. One that has ended
// must not wake the next supervisor.
func (x *container) quietOutputs(left *estate) (streams []savedStream) {
	for _, s := range x.log.streams {
		if s.ended {
			left.keeper.Drop(x.pipeName(s.name))
			continue
		}
		streams = append(streams, savedStream{Name: s.name, Rest: s.rest})
	}
	return streams
}

// takeOutputs takes up a container's standard streams where they were left.
func (x *container) takeOutputs(s *sandbox, saved []savedStream, take func(name string) (*os.File, bool)) (err error) {
	if err := x.openLog(s); err != nil {
		return err
	}
	x.stdin, _ = take(x.pipeName(stdinName))
	var streams []*stream
	for _, name := range []string{"stdout", "stderr"} {
		pipe, ok := take(x.pipeName(name))
		if !ok {
			continue // it has ended
		}
		st := &stream{name: name, pipe: pipe}
		if i := slices.IndexFunc(saved, func(s savedStream) bool { return s.Name == name }); i >= 0 {
			st.rest = saved[i].Rest
		}
		streams = append(streams, st)
	}
	if err := x.log.takeUp(streams...); err != nil {
		return err
	}
	return x.adoptTerminal(s.estate, take)
}

// adoptTerminal takes a container's terminal up.
func (x *container) adoptTerminal(left *estate, take func(name string) (*os.File, bool)) error {
	t := &terminal{}
	missing := false
	for name, file := range map[string]**os.File{masterName: &t.master, peerName: &t.peer, intoName: &t.into} {
		var ok bool
		*file, ok = take(x.pipeName(name))
		missing = missing || !ok
	}
	if missing { // it has none, or has ended
		closeFiles(t.master, t.peer, t.into)
		return nil
	}
	x.terminal = t
	x.beginTerminal(left)
	return nil
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// labelStreams gives a process's input and output the label of its container's files.
func (x *container) labelStreams(p *libcontainer.Process) error {
	for _, stream := range []any{p.Stdin, p.Stdout, p.Stderr} {
		if f, ok := stream.(*os.File); ok {
			if err := volumes.LabelPipe(f, x.plan.FileLabel); err != nil {
				return err
			}
		}
	}
	return nil
}
