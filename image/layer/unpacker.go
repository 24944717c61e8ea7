package layer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
)

// maxLayerBytes and maxLayerEntries bound one layer if the disk allows more. The largest common layers have
// some 40 GB and 500,000 files.
const (
	maxLayerBytes   = 128 << 30
	maxLayerEntries = 1_000_000
)

// LimitsFor returns what a layer may use of dir's file system: the free space less a
// reserve, so that the machine keeps working when an image does not fit. The reserve is 2 % of the file system, but
// at most 512 MiB.
func LimitsFor(dir string) (Limits, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Limits{}, fmt.Errorf("look at free space: %w", err)
	}
	block := int64(st.Bsize)
	reserve := min(int64(st.Blocks)*block/50, 512<<20)
	l := Limits{Bytes: min(maxLayerBytes, int64(st.Bavail)*block-reserve), Entries: maxLayerEntries}
	if st.Files > 0 { // btrfs has no count of inodes
		l.Entries = int(min(maxLayerEntries, int64(st.Ffree)-int64(st.Files)/50))
	}
	if l.Bytes <= 0 || l.Entries <= 0 {
		return Limits{}, report.New(report.Failure, "podrun image rm frees space", "the disk of %s is full", dir)
	}
	return l, nil
}

// UnpackOptions configures an unpacker.
type UnpackOptions struct {
	Limits  Limits
	Part    int                 // entries in one call of Apply
	Windows *semaphore.Weighted // weighted by the window's size, in all WindowMemory
	Lock    *os.File            // held as long as the child lives
}

// Unpacked is the result of unpacking a layer.
type Unpacked struct {
	DiffID     digest.Digest
	Size       int64 // bytes of the tar stream
	OpaqueRoot bool
	records.LayerStats
}

// Unpack streams a layer's blob into a child that fills root, and checks both digests. onProgress is called about
// every MiB.
func Unpack(ctx context.Context, root string, b Blob, job UnpackOptions, onProgress func(n int64)) (*Unpacked, error) {
	limits := job.Limits
	if b.Size > limits.Bytes {
		return nil, TooLargeError(limits)
	}
	src, err := b.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	blob := NewBlobReader(src, b.Digest, b.Size)
	blob.Progress = EveryMiB(onProgress)
	packed, err := b.tarStream(blob)
	if err != nil {
		return nil, blobError(blob, err)
	}
	window := min(packed.window, WindowMemory)
	if err := job.Windows.Acquire(ctx, window); err != nil {
		return nil, err
	}
	defer job.Windows.Release(window)

	recipe, err := os.OpenFile(filepath.Join(filepath.Dir(root), RecipeFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer recipe.Close()
	child, err := startUnpacker(ctx, unpackRequest{root, limits, job.Part}, recipe, job.Lock)
	if err != nil {
		return nil, err
	}
	defer child.kill()
	sum, err := child.feed(blob, packed, limits)
	if err != nil {
		return nil, err
	}
	if b.DiffID != "" && sum.diffID != b.DiffID {
		return nil, report.New(report.Failure, "the image is malformed", "its content is %s instead of %s", sum.diffID, b.DiffID)
	}
	result, err := child.result()
	if err != nil {
		return nil, err
	}
	return &Unpacked{sum.diffID, sum.size, result.OpaqueRoot, result.LayerStats}, nil
}

const (
	noSpaceText = "the allowed size"
	noSpaceHint = "free some disk space, or do not trust this image"
)

// TooLargeError returns the error of a layer that exceeds the limits.
func TooLargeError(l Limits) error {
	return report.New(report.Failure, noSpaceHint,
		"it unpacks to more than %d bytes in %d files, which is %s", l.Bytes, l.Entries, noSpaceText)
}

// EveryMiB returns a function that calls onProgress at most once for each MiB.
func EveryMiB(onProgress func(n int64)) func(n int64) {
	next := int64(0)
	return func(n int64) {
		if n >= next {
			next = n + 1<<20
			onProgress(n)
		}
	}
}

// unpacker is a running child with the entry point _unpack.
type unpacker struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout bytes.Buffer
	stderr tailBuffer
	stop   func() bool // stops watching the context
	ctx    context.Context
}

func startUnpacker(ctx context.Context, request unpackRequest, recipe, lock *os.File) (*unpacker, error) {
	arg, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer r.Close()
	unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 1<<20) // a smaller one works too
	u := &unpacker{stdin: w, ctx: ctx}
	u.cmd = reexec.Command(reexec.Spec{
		Name: protocol.EntryUnpack, Args: []string{string(arg)}, Userns: true, Net: true,
		ExtraFiles: []*os.File{lock, recipe}, // protocol.FDUnpackLock, protocol.FDUnpackRecipe; while the child holds the lock, its staging directory is not removed
	})
	dropEnviron(u.cmd)
	u.cmd.Dir = "/"
	u.cmd.Stdin, u.cmd.Stdout, u.cmd.Stderr = r, &u.stdout, &u.stderr
	if err := u.cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start unpacker: %w", err)
	}
	u.stop = context.AfterFunc(ctx, func() { u.cmd.Process.Kill() })
	return u, nil
}

type streamDigest struct {
	diffID digest.Digest
	size   int64
}

// feed sends a blob's tar stream to the child and reads the blob to its end. packed is the blob with its
// detected format.
func (u *unpacker) feed(blob *blobReader, packed *compressedStream, l Limits) (streamDigest, error) {
	tarStream, err := packed.decompress()
	if err != nil {
		return streamDigest{}, blobError(blob, err)
	}
	defer tarStream.Close()
	hash := sha256.New()
	buf := make([]byte, 256<<10)
	in := struct{ io.Writer }{u.stdin} // the pipe's own ReadFrom would not use buf
	n, err := io.CopyBuffer(in, io.TeeReader(io.LimitReader(tarStream, l.stream()+1), hash), buf)
	switch {
	case errors.Is(err, unix.EPIPE): // the child has reported why it ended
		_, err = u.result()
		return streamDigest{}, err
	case err != nil:
		return streamDigest{}, blobError(blob, err)
	case n > l.stream():
		return streamDigest{}, TooLargeError(l)
	}
	if _, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{blob}, buf); err != nil { // data after the compressed stream
		return streamDigest{}, err
	}
	return streamDigest{digest.NewDigest(digest.SHA256, hash), n}, blob.verify()
}

// blobError reads on after a stream could not be decompressed: a wrong digest or size of the blob is the
// better error.
func blobError(blob *blobReader, err error) error {
	if _, rerr := io.Copy(io.Discard, blob); rerr != nil {
		return rerr
	}
	if verr := blob.verify(); verr != nil {
		return verr
	}
	return fmt.Errorf("decompress: %w", err)
}

// result waits for the child and returns its result.
func (u *unpacker) result() (*unpackResult, error) {
	u.stdin.Close()
	err := u.cmd.Wait()
	u.stop()
	if cerr := u.ctx.Err(); cerr != nil {
		return nil, cerr
	}
	if err != nil {
		message := u.stderr.String()
		if strings.Contains(message, unix.ENOSPC.Error()) {
			return nil, report.New(report.Failure, "podrun image rm frees space", "unpack: %s", message)
		}
		if strings.Contains(message, noSpaceText) {
			return nil, report.New(report.Failure, noSpaceHint, "unpack: %s", message)
		}
		if message != "" {
			return nil, fmt.Errorf("unpack: %s", message)
		}
		return nil, fmt.Errorf("unpack: %w", err)
	}
	var r unpackResult
	if err := json.Unmarshal(u.stdout.Bytes(), &r); err != nil {
		return nil, fmt.Errorf("unpack: read result: %w", err)
	}
	return &r, nil
}

// kill ends a child that was not waited for.
func (u *unpacker) kill() {
	u.stdin.Close()
	if u.cmd.ProcessState == nil {
		u.cmd.Process.Kill()
		u.cmd.Wait()
		u.stop()
	}
}

// tailBuffer keeps the last bytes that were written to it.
type tailBuffer struct{ b []byte }

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - 4096; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

func (t *tailBuffer) String() string { return strings.TrimSpace(string(t.b)) }

// WindowMemory bounds the sum of zstd windows, in bytes. An unpacker with a larger window runs alone.
const WindowMemory = 16 << 20
