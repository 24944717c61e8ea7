package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/containers/image/v5/types"
	"github.com/opencontainers/go-digest"
)

// openBlobAt opens a blob in a registry from an offset to its end, with a Range request.
// The library's sources can do that with all that GetBlob does for credentials, but the
// type of one argument is internal to it: so the call is made by reflection. A registry
// that does not know ranges sends the whole, of which the beginning is thrown away.
//
// It is GetBlobAt(ctx, types.BlobInfo, []struct{Offset, Length uint64})
// (chan io.ReadCloser, chan error, error).
func openBlobAt(ctx context.Context, src types.ImageSource, d digest.Digest, size, offset int64) (io.ReadCloser, error) {
	call := reflect.ValueOf(src).MethodByName("GetBlobAt")
	if !call.IsValid() || call.Type().NumIn() != 3 {
		return nil, errors.New("this transport cannot begin in the middle of a blob")
	}
	chunks := reflect.MakeSlice(call.Type().In(2), 1, 1)
	chunks.Index(0).FieldByName("Offset").SetUint(uint64(offset))
	chunks.Index(0).FieldByName("Length").SetUint(math.MaxUint64) // to the end
	info := types.BlobInfo{Digest: d, Size: size}
	out := call.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(info), chunks})
	if err, ok := out[2].Interface().(error); ok && err != nil {
		return nil, err
	}
	streams, ok1 := out[0].Interface().(chan io.ReadCloser)
	errs, ok2 := out[1].Interface().(chan error)
	if !ok1 || !ok2 {
		return nil, errors.New("read blob: the library answers in another way")
	}
	// Its goroutine hands over one stream, or an error, and waits until it is taken.
	select {
	case body, ok := <-streams:
		if ok {
			return &blobTail{body, errs}, nil
		}
		return nil, fmt.Errorf("read blob from byte %d: %w", offset, orEOF(<-errs))
	case err := <-errs:
		if body, ok := <-streams; err == nil && ok {
			return &blobTail{body, errs}, nil
		}
		return nil, fmt.Errorf("read blob from byte %d: %w", offset, orEOF(err))
	}
}

// blobTail is what blobFrom opens. Where the registry has sent the whole, the library has two
// bugs that meet a connection which breaks: what comes with the error are no bytes of
// the blob, and Close panics, but not before it has freed everything.
type blobTail struct {
	body io.ReadCloser
	errs chan error // of the library's goroutine, which ends when the request's context does
}

func (r *blobTail) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF {
		return 0, err
	}
	return n, err
}

func (r *blobTail) Close() (err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
		for range r.errs { // or it would wait for ever to report one
		}
	}()
	return r.body.Close()
}

// orEOF is the error of a stream that ended without one.
func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}
