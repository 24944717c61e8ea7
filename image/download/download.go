package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/internal/sleep"
)

// Download is a blob that is being fetched from a registry. The fetch runs at the network's speed and writes
// to a partial file, from which the blob is verified and unpacked at the same time. So neither side waits
// for the other, and received bytes are not lost when the process is killed. Without a partial file each
// piece waits until it is read.
//
// A broken or stalled connection is replaced by a new one for the rest.
type Download struct {
	from        func(ctx context.Context, offset int64) (io.ReadCloser, error)
	size        int64
	retry       RetryPolicy
	isTransient func(error) bool // whether an error is transient
	file        *partialFile     // nil: none
	old         int64            // bytes in file at the start

	mu     sync.Mutex
	moved  sync.Cond // have, piece or err has changed
	have   int64     // bytes received
	taken  int64     // bytes read by the reader
	piece  []byte    // the last received bytes if no file holds them
	held   bool      // a piece has waited since watch last checked
	err    error     // why the fetch ended; io.EOF: complete
	cancel context.CancelFunc
	done   chan struct{} // closed when the fetch has ended
}

// Downloader fetches blobs into a store.
type Downloader struct {
	PartialDir string                                 // the directory of partial files
	Limits     func(dir string) (layer.Limits, error) // LimitsFor, or a test's function
	Retry      RetryPolicy
	Retryable  func(error) bool // whether a connection's error is transient
	// MaxPartial is the maximum size of a partial file in bytes; 0: limited by the disk only.
	MaxPartial int64
}

// StartDownload begins to fetch a blob, at the offset where an earlier pull stopped.
func (s *Downloader) StartDownload(ctx context.Context, b layer.Blob) *Download {
	ctx, cancel := context.WithCancel(ctx)
	d := &Download{from: b.OpenAt, size: b.Size, retry: s.Retry, isTransient: s.Retryable, cancel: cancel, done: make(chan struct{})}
	d.moved.L = &d.mu
	if p, err := s.openPartial(b.Digest, b.Size); err == nil { // on error the download has no file
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

// run fetches until the blob is complete. It then returns io.EOF.
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
		case d.have-before >= d.retry.MinBytes || d.have == d.size:
			failed = 0
		}
		if !d.isTransient(err) || failed == len(d.retry.BlobWaits) {
			return err
		}
		if err := sleep.For(ctx, d.retry.BlobWaits[failed]); err != nil {
			return err
		}
		failed++
	}
}

// attempt fetches the missing bytes over one connection.
func (d *Download) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var body io.ReadCloser
	defer func() {
		cancel(nil) // before Close, which may read an endless rest
		if body != nil {
			body.Close()
		}
	}()
	late := time.AfterFunc(d.retry.AnswerTimeout, func() { cancel(ErrStalled) })
	defer late.Stop()
	var err error
	if body, err = d.from(ctx, d.have); err != nil {
		return Cause(ctx, err)
	}
	late.Stop()
	defer d.watch(cancel)()
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf[:min(int64(len(buf)), d.size-d.have+1)]) // one byte beyond the blob's size is an error
		if n > 0 {
			if derr := d.deliver(ctx, buf[:n]); derr != nil {
				return derr
			}
		}
		switch {
		case err == io.EOF && d.have < d.size:
			return fmt.Errorf("blob ends after %d of %d bytes: %w", d.have, d.size, io.ErrUnexpectedEOF)
		case err == io.EOF, d.have > d.size:
			return nil // the reader reports excess bytes
		case err != nil:
			return Cause(ctx, err)
		}
	}
}

// watch cancels a connection that sends too little, until stop is called. A connection whose bytes wait for
// the reader is not stalled.
func (d *Download) watch(giveUp context.CancelCauseFunc) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.have
	d.held = false
	var t *time.Timer
	t = time.AfterFunc(d.retry.StallWindow, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.have-last < d.retry.MinBytes && !d.held {
			giveUp(ErrStalled)
			return
		}
		last, d.held = d.have, d.piece != nil
		t.Reset(d.retry.StallWindow)
	})
	return func() { t.Stop() }
}

// Cause returns why a request was cancelled, or else its error.
func Cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// deliver passes received bytes to the file, or else to the reader.
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
	for d.taken < d.have && ctx.Err() == nil { // the bytes in the file come first
		d.moved.Wait()
	}
	if d.file != nil { // the disk is full: the rest goes without the file, which is removed to free its space
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

// Open returns the one reader of the download.
func (d *Download) Open(context.Context) (io.ReadCloser, error) { return d, nil }

// Close ends the fetch. The partial file stays.
func (d *Download) Close() error {
	d.cancel()
	<-d.done
	return nil
}

// Finish is called with the layer's result after Close. It removes the file if the layer is in the store, or
// if the fetched bytes are wrong.
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

// ShouldRestart reports whether a wrong blob began with bytes of an earlier pull: a power cut may have
// damaged them.
func (d *Download) ShouldRestart(err error) bool {
	return d.old > 0 && errors.As(err, new(*layer.BlobMismatchError))
}
