package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/pod"
)

// maxMessage is how much of the end of a termination message is shown
// (kubelet: pkg/kubelet/kuberuntime MaxContainerTerminationMessageLength).
const maxMessage = 4096

// makeMessageFile makes the file that is bound at the container's
// terminationMessagePath.
func (x *container) makeMessageFile(s *sandbox) error {
	if x.plan.TerminationMessagePath == "" {
		return nil
	}
	path := x.messageFile(s)
	if err := writeShared(path, "", 0o666); err != nil {
		return fmt.Errorf("make termination log: %w", err)
	}
	x.message = path
	return s.own(path)
}

// terminationMessage is what the container left at its terminationMessagePath,
// or, if it asks for that and failed without a word, the end of its log.
func (x *container) terminationMessage(logDir string, code int) string {
	text, err := tail(x.message, maxMessage)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "read termination message: " + err.Error()
	}
	if text == "" && code != 0 && x.plan.TerminationMessageFrom == pod.MessageFallbackToLogs {
		return logTail(logDir, x.attempt)
	}
	return text
}

// tail reads the last max bytes of a regular file. The container owns it: it may
// have become anything.
func tail(path string, max int64) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, st.Size()-min(st.Size(), max), max))
	return string(b), err
}
