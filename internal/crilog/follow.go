package crilog

import (
	"context"
	"errors"
	"io/fs"
)

// Follower reads the logs of one container's instances, one after the other, while they are
// written.
type Follower struct {
	Dir   string
	First int // the first attempt to read; earlier ones are skipped
	Selection
	Wake <-chan struct{} // something changed in Dir
	Done <-chan struct{} // closed: nothing more will be written
	Sink Sink

	// OnSkipped, if set, is called when lines were rotated away before they were read: a slow
	// reader must neither block the container nor fill the disk.
	OnSkipped func()

	at *reader
	to Sink
}

// Run reads until it has passed on everything that was written before Done was closed, or until ctx
// ends, which is no error. Tail applies to the first instance.
func (f *Follower) Run(ctx context.Context) error {
	f.to = since(f.Since, f.Sink)
	defer func() {
		if f.at != nil {
			f.at.close()
		}
	}()
	err := f.run(ctx)
	if errors.Is(err, ErrStop) {
		return f.Sink.Flush()
	}
	return err
}

func (f *Follower) run(ctx context.Context) error {
	for {
		last := false
		select {
		case <-f.Done: // checked before reading: what was written until now is read below
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

// drain reads everything that is there, across segments and instances.
func (f *Follower) drain() error {
	for {
		// List before reading: a file that has a successor in the list is complete.
		l, err := readListing(f.Dir)
		if err != nil {
			return err
		}
		if f.at != nil {
			if err := f.at.copy(f.to); err != nil {
				return err
			}
		}
		more, err := f.advance(l)
		if err != nil {
			return err
		}
		if !more {
			return f.Sink.Flush()
		}
	}
}

// advance switches to the next file, if there is one.
func (f *Follower) advance(l listing) (bool, error) {
	if f.at != nil && l.last(f.at.attempt) >= f.at.segment {
		if next, err := f.nextSegment(); next != nil || err != nil {
			return next != nil, f.switchTo(next, err)
		}
	}
	from := f.First
	if f.at != nil {
		from = f.at.attempt + 1
	}
	for _, attempt := range l.attempts() {
		if attempt < from {
			continue
		}
		next, err := f.firstSegment(attempt)
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned just now
		}
		return true, f.switchTo(next, err)
	}
	return false, nil
}

// switchTo closes the file that has been read to its end and continues with the next.
func (f *Follower) switchTo(next *reader, err error) error {
	if err != nil {
		return err
	}
	if f.at != nil {
		err = f.at.finish(f.to)
		f.at.close()
	}
	f.at = next
	return err
}

// firstSegment opens an instance's log at the position where reading begins.
func (f *Follower) firstSegment(attempt int) (*reader, error) {
	c, err := openTail(f.Dir, attempt, f.Selection)
	if err != nil {
		return nil, err
	}
	f.Tail = -1 // the instances after it are read completely
	c.keepFirst()
	return newReader(c.files[0], attempt, c.segments[0]), nil
}

// nextSegment opens the file after the last file that has been read, or returns nil if it does not exist
// yet.
func (f *Follower) nextSegment() (*reader, error) {
	c, err := openInstance(f.Dir, f.at.attempt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for len(c.files) > 0 && c.segments[0] <= f.at.segment {
		c.closeFirst(1)
	}
	if len(c.files) == 0 {
		return nil, nil
	}
	c.keepFirst()
	if c.segments[0] > f.at.segment+1 && f.OnSkipped != nil {
		f.OnSkipped()
	}
	return newReader(c.files[0], f.at.attempt, c.segments[0]), nil
}

func (f *Follower) end() error {
	if f.at == nil {
		return nil
	}
	if err := f.at.finish(f.to); err != nil {
		return err
	}
	return f.Sink.Flush()
}
