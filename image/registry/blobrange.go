package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"go.podman.io/image/v5/types"
)

// openBlobAt opens a blob in a registry from an offset to its end, with a Range request. The library's
// sources support this with all that GetBlob does for credentials, but the type of one argument is internal
// to it. So the call is made by reflection. A registry without support for ranges sends the whole blob, and
// its beginning is discarded.
//
// The method is GetBlobAt(ctx, types.BlobInfo, []struct{Offset, Length uint64}) (chan io.ReadCloser, chan
// error, error).
func openBlobAt(ctx context.Context, src types.ImageSource, info types.BlobInfo, offset int64) (io.ReadCloser, error) {
	call := reflect.ValueOf(src).MethodByName("GetBlobAt")
	if !call.IsValid() || call.Type().NumIn() != 3 {
		return nil, errors.New("this transport cannot begin in the middle of a blob")
	}
	chunks := reflect.MakeSlice(call.Type().In(2), 1, 1)
	chunks.Index(0).FieldByName("Offset").SetUint(uint64(offset))
	chunks.Index(0).FieldByName("Length").SetUint(math.MaxUint64) // to the end
	out := call.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(info), chunks})
	if err, ok := out[2].Interface().(error); ok && err != nil {
		return nil, err
	}
	streams, ok1 := out[0].Interface().(chan io.ReadCloser)
	errs, ok2 := out[1].Interface().(chan error)
	if !ok1 || !ok2 {
		return nil, errors.New("read blob: unexpected reply of the library")
	}
	// Its goroutine sends one stream, or an error, and waits until it is received.
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

// blobTail is the stream that openBlobAt opens.
type blobTail struct {
	io.ReadCloser
	errs chan error // of the library's goroutine, which ends when the request's context does
}

func (r *blobTail) Close() error {
	err := r.ReadCloser.Close()
	for range r.errs { // otherwise it would wait for ever to report one
	}
	return err
}

// orEOF returns err, or the error of a stream that ended without one.
func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}
