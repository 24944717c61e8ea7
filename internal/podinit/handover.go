package podinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/wire"
)

// NotifyTarget describes the main process of the pod's systemd unit to the pod's supervisor, which
// notifies it.
type NotifyTarget struct {
	wire.NotifyRequest
	Socket *os.File // see wire.Notify
	Output *os.File // receives a copy of the containers' output; nil for none
}

// inheritedTarget is the JSON value of protocol.EnvNotify.
type inheritedTarget struct {
	Socket, Output int
	wire.NotifyRequest
}

// pass passes f to the pod's first process. It removes the variables that systemd
// sets for the unit's main process from the environment, because they are not for the pod.
func (f *NotifyTarget) pass(cmd *exec.Cmd) {
	cmd.Env = reexec.WithoutSystemd(cmd.Env)
	if f == nil {
		return
	}
	a := inheritedTarget{Output: -1, NotifyRequest: f.NotifyRequest}
	a.Socket = reexec.PassFile(cmd, f.Socket)
	if f.Output != nil {
		a.Output = reexec.PassFile(cmd, f.Output)
	}
	text, _ := json.Marshal(a) // numbers and a string cannot fail
	cmd.Env = append(cmd.Env, protocol.EnvNotify+"="+string(text))
}

// InheritedNotifyTarget returns the notify target that the supervisor received at its start: the
// request and the descriptors (output -1: none). It may be called once.
func InheritedNotifyTarget() (req wire.NotifyRequest, socket, output int, ok bool, err error) {
	text := os.Getenv(protocol.EnvNotify)
	if text == "" {
		return req, -1, -1, false, nil
	}
	os.Unsetenv(protocol.EnvNotify)
	var a inheritedTarget
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return req, -1, -1, false, fmt.Errorf("read %s: %w", protocol.EnvNotify, err)
	}
	for _, fd := range []int{a.Socket, a.Output} {
		if fd >= 0 {
			unix.CloseOnExec(fd)
		}
	}
	return a.NotifyRequest, a.Socket, a.Output, true, nil
}

func passPorts(cmd *exec.Cmd, ports map[string]*os.File) {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		list = append(list, fmt.Sprintf("%s=%d", name, reexec.PassFile(cmd, ports[name])))
	}
	if len(list) > 0 {
		cmd.Env = append(cmd.Env, protocol.EnvPorts+"="+strings.Join(list, " "))
	}
}

// InheritedPorts returns the host ports that the supervisor received at its start, by the names of
// Options.Ports. It may be called once.
func InheritedPorts() map[string]*os.File {
	files := map[string]*os.File{}
	for name, fd := range inheritedFiles(os.Getenv(protocol.EnvPorts)) {
		files[name] = os.NewFile(fd, name)
	}
	os.Unsetenv(protocol.EnvPorts)
	return files
}

// pendingRecord records a pod while its processes start: writing to a disk takes as long as
// starting them.
type pendingRecord struct {
	gate, notify *os.File // a pipe: the supervisor's end, and this process's
	do           func() error
	done         chan error // nil: not begun
}

// newRecord prepares the recording of a pod by do. The supervisor that cmd starts waits until do has returned. If do
// fails, or this process ends before, the supervisor exits. The nil pendingRecord is for a pod that is recorded
// already.
func newRecord(cmd *exec.Cmd, do func() error) (*pendingRecord, error) {
	if do == nil {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make record pipe: %w", err)
	}
	reexec.PassFileEnv(cmd, protocol.EnvRecord, r)
	return &pendingRecord{gate: r, notify: w, do: do}, nil
}

// begin starts the recording, once the first process has its pod: before, it would delay that process.
func (r *pendingRecord) begin() {
	if r == nil {
		return
	}
	r.done = make(chan error, 1)
	go func() {
		err := r.do()
		if err == nil {
			_, err = r.notify.Write([]byte("x"))
		}
		r.notify.Close()
		r.done <- err
	}()
}

// wait returns when the pod is recorded, or the error of the recording. It returns nil if that has not begun.
func (r *pendingRecord) wait() error {
	if r == nil {
		return nil
	}
	defer r.gate.Close()
	if r.done == nil {
		return r.notify.Close()
	}
	return <-r.done
}

// AwaitRecord returns in a pod's first supervisor when the pod is recorded.
func AwaitRecord() error {
	text := os.Getenv(protocol.EnvRecord)
	if text == "" {
		return nil
	}
	os.Unsetenv(protocol.EnvRecord)
	fd, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("read %s: %w", protocol.EnvRecord, err)
	}
	f := os.NewFile(uintptr(fd), "record")
	defer f.Close()
	if n, _ := f.Read(make([]byte, 1)); n != 1 {
		return errors.New("the pod was not recorded: the command that started it gave up")
	}
	return nil
}
