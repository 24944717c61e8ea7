package crilog

import (
	"context"
	"errors"
	"io/fs"
)

// Follower reads the logs of one container's instances, one after the other, as
// they are written.
type Follower struct {
	Dir   string
	First int             // the first attempt to read; earlier ones are left out
	Tail  int             // of the first instance only the last so many lines; -1: all
	Wake  <-chan struct{} // something changed in Dir
	Done  <-chan struct{} // closed: nothing is written from now on
	Sink  Sink

	at *reader
}

// Run reads until everything that was there when Done was closed has been handed
// on, or ctx ends, which is no error.
func (f *Follower) Run(ctx context.Context) error {
	defer func() {
		if f.at != nil {
			f.at.close()
		}
	}()
	for {
		last := false
		select {
		case <-f.Done: // looked at before reading: what was written until now is read below
			last = true
		default:
		}
		if err := f.drain(); err != nil {
			return err
		}
		if last {
			return f.end()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.Done:
		case <-f.Wake:
		}
	}
}

// drain reads all there is, over the ends of instances.
func (f *Follower) drain() error {
	for {
		if f.at != nil {
			if err := f.at.copy(f.Sink); err != nil {
				return err
			}
		}
		next, err := f.successor()
		if err != nil {
			return err
		}
		if next < 0 {
			return f.Sink.Flush()
		}
		if f.at != nil {
			// It ended before its successor was made, perhaps after we had read it.
			if err := f.at.copy(f.Sink); err != nil {
				return err
			}
			if err := f.at.finish(f.Sink); err != nil {
				return err
			}
			f.at.close()
		}
		f.First = next + 1
		f.at, err = open(f.Dir, next, f.Tail)
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned just now
		}
		if err != nil {
			return err
		}
		f.Tail = -1
	}
}

// successor is the next instance that has a log, or -1.
func (f *Follower) successor() (int, error) {
	attempts, err := Instances(f.Dir)
	if err != nil {
		return -1, err
	}
	for _, n := range attempts {
		if n >= f.First {
			return n, nil
		}
	}
	return -1, nil
}

func (f *Follower) end() error {
	if f.at == nil {
		return nil
	}
	if err := f.at.finish(f.Sink); err != nil {
		return err
	}
	return f.Sink.Flush()
}
