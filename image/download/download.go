package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/podrun/podrun/image/layer"
)

// Download is a blob on its way from a registry. It comes as quickly as the network
// brings it, into a partial file, from which it is verified and unpacked at the same
// time: so neither waits for the other, and what has come is not lost when the process
// is killed. Without such a file each piece waits until it is taken.
//
// A connection that breaks, or that brings nothing, is made anew for the rest.
type Download struct {
	from     func(ctx context.Context, offset int64) (io.ReadCloser, error)
	size     int64
	patience RetryPolicy
	passing  func(error) bool // an error may be gone in a moment
	file     *partialFile     // nil: there is none
	old      int64            // how much of it was there before

	mu     sync.Mutex
	moved  sync.Cond // have, piece or err has changed
	have   int64     // bytes that have come
	taken  int64     // bytes that were read
	piece  []byte    // the last of those that have come, where there is no file to hold them
	held   bool      // a piece has waited since the watch looked
	err    error     // why no more comes; io.EOF: all is there
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing is fetched any more
}

// Downloader is how blobs are fetched into a store.
type Downloader struct {
	PartialDir string                                 // the directory of partial files
	Limits     func(dir string) (layer.Limits, error) // LimitsFor, or a test's
	Retry      RetryPolicy
	Retryable  func(error) bool // an error of a connection may be gone in a moment
	// MaxPartial is how many bytes a partial file may have at the most; 0: as many as there
	// is room for.
	MaxPartial int64
}

// Start begins to fetch a blob, from where an earlier pull has left it.
func (s *Downloader) Start(ctx context.Context, b layer.Blob) *Download {
	ctx, cancel := context.WithCancel(ctx)
	d := &Download{from: b.OpenAt, size: b.Size, patience: s.Retry, passing: s.Retryable, cancel: cancel, done: make(chan struct{})}
	d.moved.L = &d.mu
	if p, err := s.openPartial(b.Digest, b.Size); err == nil { // else it is done without
		d.file, d.old, d.have = p, p.size, p.size
	}
	go func() {
		defer close(d.done)
		err := d.run(ctx)
		d.mu.Lock()
		d.err = err
		d.moved.Broadcast()
		d.mu.Unlock()
	}()
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.moved.Broadcast()
	})
	return d
}

// run fetches until all is there. io.EOF says that it is.
func (d *Download) run(ctx context.Context) error {
	failed := 0
	for first := true; ; first = false {
		before := d.have
		if before == d.size && (!first || d.old > 0) {
			return io.EOF
		}
		err := d.attempt(ctx)
		switch {
		case err == nil:
			return io.EOF
		case ctx.Err() != nil:
			return ctx.Err()
		case d.have-before >= d.patience.MinBytes || d.have == d.size:
			failed = 0
		}
		if !d.passing(err) || failed == len(d.patience.BlobWaits) {
			return err
		}
		if err := Sleep(ctx, d.patience.BlobWaits[failed]); err != nil {
			return err
		}
		failed++
	}
}

// attempt fetches what is missing over one connection.
func (d *Download) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var body io.ReadCloser
	defer func() {
		cancel(nil) // first: Close may read what still comes, which may be without an end
		if body != nil {
			body.Close()
		}
	}()
	late := time.AfterFunc(d.patience.AnswerTimeout, func() { cancel(ErrStalled) })
	defer late.Stop()
	var err error
	if body, err = d.from(ctx, d.have); err != nil {
		return Cause(ctx, err)
	}
	late.Stop()
	defer d.watch(cancel)()
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf[:min(int64(len(buf)), d.size-d.have+1)]) // one byte more than it has is an error
		if n > 0 {
			if derr := d.deliver(ctx, buf[:n]); derr != nil {
				return derr
			}
		}
		switch {
		case err == io.EOF && d.have < d.size:
			return fmt.Errorf("blob ends after %d of %d bytes: %w", d.have, d.size, io.ErrUnexpectedEOF)
		case err == io.EOF, d.have > d.size:
			return nil // too much is the reader's error
		case err != nil:
			return Cause(ctx, err)
		}
	}
}

// watch gives a connection up that brings nothing, until the result is called. One whose
// bytes nobody takes is not to blame.
func (d *Download) watch(giveUp context.CancelCauseFunc) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.have
	d.held = false
	var t *time.Timer
	t = time.AfterFunc(d.patience.StallWindow, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.have-last < d.patience.MinBytes && !d.held {
			giveUp(ErrStalled)
			return
		}
		last, d.held = d.have, d.piece != nil
		t.Reset(d.patience.StallWindow)
	})
	return func() { t.Stop() }
}

// Cause is why a request was given up, if it was, or else its error.
func Cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// deliver hands over what has come: to the file, or else to the reader.
func (d *Download) deliver(ctx context.Context, b []byte) error {
	if d.file != nil && d.file.append(b) == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.have += int64(len(b))
		d.moved.Broadcast()
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = true
	for d.taken < d.have && ctx.Err() == nil { // what is in the file comes first
		d.moved.Wait()
	}
	if d.file != nil { // the disk is full: the rest goes without it, and so does the room it took
		d.file.remove()
		d.file.f.Truncate(0)
		d.file.close()
		d.file = nil
	}
	d.piece = b
	d.have += int64(len(b))
	d.moved.Broadcast()
	for len(d.piece) > 0 && ctx.Err() == nil {
		d.moved.Wait()
	}
	d.piece = nil
	return ctx.Err()
}

// Read waits for the next bytes.
func (d *Download) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.taken == d.have && d.err == nil {
		d.moved.Wait()
	}
	switch {
	case d.taken == d.have:
		return 0, d.err
	case len(d.piece) > 0:
		n := copy(p, d.piece)
		d.piece = d.piece[n:]
		d.taken += int64(n)
		d.moved.Broadcast()
		return n, nil
	}
	file, from := d.file, d.taken
	p = p[:min(int64(len(p)), d.have-from)]
	d.mu.Unlock()
	n, err := file.f.ReadAt(p, from)
	d.mu.Lock()
	d.taken += int64(n)
	d.moved.Broadcast()
	return n, err
}

// Open is the one reader of the download.
func (d *Download) Open(context.Context) (io.ReadCloser, error) { return d, nil }

// Close ends the fetching. The partial file stays.
func (d *Download) Close() error {
	d.cancel()
	<-d.done
	return nil
}

// Finish is told what has become of the layer, after Close. The file is needed no more
// when it is in the store, or when what was fetched is not what it should be.
func (d *Download) Finish(err error) error {
	if d.file == nil {
		return nil
	}
	defer d.file.close()
	if err == nil || errors.As(err, new(*layer.BlobMismatchError)) {
		return d.file.remove()
	}
	return nil
}

// ShouldRestart says whether a blob that was found to be wrong had its beginning from an
// earlier pull: what a power cut has left of it may be to blame.
func (d *Download) ShouldRestart(err error) bool {
	return d.old > 0 && errors.As(err, new(*layer.BlobMismatchError))
}
