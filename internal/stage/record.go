package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// recordEnv names the descriptor from which a pod's first supervisor reads a byte when the
// pod is on record.
const recordEnv = "_PODRUN_RECORD"

// recording is what puts a pod on record while its processes begin: writing to a disk takes
// as long as they do.
type recording struct {
	gate *os.File // the supervisor's end
	done chan error
}

// record begins a recording, for which the supervisor that cmd leads to will wait. If do
// fails, or this process ends before, the supervisor ends. The nil recording is that of a
// pod which is on record.
func record(cmd *exec.Cmd, do func() error) (*recording, error) {
	if do == nil {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make record pipe: %w", err)
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, r)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", recordEnv, 2+len(cmd.ExtraFiles)))
	rec := &recording{gate: r, done: make(chan error, 1)}
	go func() {
		err := do()
		if err == nil {
			_, err = w.Write([]byte("x"))
		}
		w.Close()
		rec.done <- err
	}()
	return rec, nil
}

// wait returns when the pod is on record, or why it is not.
func (r *recording) wait() error {
	if r == nil {
		return nil
	}
	defer r.gate.Close()
	return <-r.done
}

// AwaitRecord returns in a pod's first supervisor when the pod is on record.
func AwaitRecord() error {
	text := os.Getenv(recordEnv)
	if text == "" {
		return nil
	}
	os.Unsetenv(recordEnv)
	fd, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("read %s: %w", recordEnv, err)
	}
	f := os.NewFile(uintptr(fd), "record")
	defer f.Close()
	if n, _ := f.Read(make([]byte, 1)); n != 1 {
		return errors.New("the pod was not put on record: whoever began it has given up")
	}
	return nil
}
