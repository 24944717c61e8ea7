package runner

import (
	"os"
	"slices"
)

// output makes one of the container's outputs, on its way to the log, and returns the
// container's end. The keeper has the other before anything is written: a supervisor
// that is killed leaves nobody with a broken pipe, and its successor goes on.
func (x *container) output(left *estate, name string) (*os.File, error) {
	w, err := x.log.pipe(name)
	if err != nil {
		return nil, err
	}
	s := x.log.streams[len(x.log.streams)-1]
	if err := left.keeper.Watch(x.pipeName(name), s.pipe); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// pipeName is what the keeper calls an output.
func (x *container) pipeName(stream string) string { return x.id() + "." + stream }

// dropOutputs lets the keeper close the outputs of a container that has ended.
func (x *container) dropOutputs(left *estate) {
	for _, s := range x.log.streams {
		left.keeper.Drop(x.pipeName(s.name))
	}
}

// savedStream is an output of a container whose supervisor dozes.
type savedStream struct {
	Name string
	Rest []byte
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

// rests are what a dozing supervisor has left of its outputs.
func (a *adoption) rests(r savedRun) []savedStream {
	if a.was.Died {
		return nil
	}
	return r.Streams
}

// takeOutputs takes up a container's output where it was left.
func (a *adoption) takeOutputs(x *container, saved []savedStream) (err error) {
	s := a.engine.sandbox
	if x.log, err = openLog(s.logPlace(x.plan.Name, x.attempt), s.shower(x.plan.Name)); err != nil {
		return err
	}
	var streams []*stream
	for _, name := range []string{"stdout", "stderr"} {
		pipe, ok := a.take(x.pipeName(name))
		if !ok {
			continue // it has ended
		}
		st := &stream{name: name, pipe: pipe}
		if i := slices.IndexFunc(saved, func(s savedStream) bool { return s.Name == name }); i >= 0 {
			st.rest = saved[i].Rest
		}
		streams = append(streams, st)
	}
	return x.log.takeUp(streams...)
}
