package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/memory"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// runAsFirst runs podrun node with the process's own arguments in a child, because this process is the first one of a
// container (podrun cluster): processes whose parents have ended become its children. It reaps them, and forwards signals.
func (o *options) runAsFirst() error {
	dirs, err := store.FindUserDirs(o.env.Getenv)
	if err != nil {
		return err
	}
	if err := os.Chmod(dirs.Data, 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) { // a claim: every user of the container may write it
		return fmt.Errorf("prepare the data directory: %w", err)
	}
	if _, err := delegation.FindAndPrepare(); err != nil && !errors.As(err, new(*delegation.NotDelegated)) { // its pods report that
		report.Print(o.env.ErrOut, fmt.Errorf("limits of the cluster's pods are not enforced: %w", err))
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	agent := exec.Command("/proc/self/exe", os.Args[1:]...)
	agent.Args[0] = os.Args[0]
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	if err := agent.Start(); err != nil {
		return fmt.Errorf("start podrun node: %w", err)
	}
	memory.NewShrinker(shrinkAfter, 8<<10) // nothing happens in this process
	go func() {
		for s := range signals {
			_ = agent.Process.Signal(s) // it may have ended
		}
	}()
	for {
		var status unix.WaitStatus
		switch pid, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for podrun node: %w", err)
		case pid == agent.Process.Pid && status.Signaled():
			return &exitcode.Error{Code: 128 + int(status.Signal())}
		case pid == agent.Process.Pid && status.ExitStatus() != 0:
			return &exitcode.Error{Code: status.ExitStatus()}
		case pid == agent.Process.Pid:
			return nil
		}
	}
}
