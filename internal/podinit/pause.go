package podinit

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
)

// UserNS returns the path of the user namespace of the pod's containers, or "" if they use the
// supervisor's. In a user namespace of their own, containers have no privileges over what the
// user's pods share, whatever their capabilities; the ids may be the same.
func UserNS() string {
	path := namespacePath(protocol.FDUser)
	if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, "user:") {
		return ""
	}
	return path
}

// StartPause starts the process that is PID 1 of the PID namespace which a pod's containers share,
// in their user namespace (UserNS). It is a child of this process and ends with the pod init.
// namespaces are the paths of the pod's namespaces, which it joins.
func StartPause(user string, namespaces ...string) (pid int, err error) {
	cmd := exec.Command(fmt.Sprintf("/proc/%d/exe", PID()), "pause") // the pod program
	cmd.Args[0] = "podrun"
	cmd.Env = []string{protocol.EnvEnter + "=" + protocol.EnterPause}
	for _, path := range namespaces {
		f, err := os.Open(path)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		reexec.PassFile(cmd, f) // from protocol.FDPause on
	}
	if user == "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	}
	ns, err := os.Open(user)
	if err != nil {
		return 0, err
	}
	defer ns.Close()
	reexec.PassFileEnv(cmd, protocol.EnvUserNS, ns)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	if pid, err = strconv.Atoi(string(text)); err != nil {
		return 0, fmt.Errorf("read its pid: %w", err)
	}
	return pid, nil
}
