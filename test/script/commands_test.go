package script

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

func commands() map[string]scriptcmd.Command {
	return map[string]scriptcmd.Command{
		"code":           scriptcmd.Code,
		"eventually":     scriptcmd.Eventually(repeated),
		"mode":           mode,
		"nothingleft":    nothingLeft,
		"killinit":       killPodInit,
		"killpod":        killPod,
		"killsupervisor": killSupervisor,
		"killnetstack":   killNetstack,
		"terminate":      terminate,
		"hibernates":     hibernates,
		"archive":        archive,
		"registry":       registry,
		"notify":         notify,
		"killcontroller": killController,
		"firstpod":       firstPod,
		"terminal":       terminal,
		"lock":           lock,
		"tmux":           tmux,
		"escaped":        escaped,
		"fastpath":       fastPath,
	}
}

func hostOf(ts *testscript.TestScript) *host { return ts.Value(hostKey{}).(*host) }

// repeated returns the command of one repetition.
func repeated(ts *testscript.TestScript, args []string) *exec.Cmd {
	path := hostOf(ts).podrun().Path
	if args[0] != "podrun" {
		var err error
		path, err = exec.LookPath(args[0])
		ts.Check(err)
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), hostOf(ts).env
	return cmd
}

// mode MODE FILE checks the permission bits of a file, as in 0600.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 2, "mode MODE FILE")
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	st, err := os.Lstat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := st.Mode().Perm(); got != os.FileMode(want) {
		ts.Fatalf("%s has mode %#o instead of %#o", args[1], got, want)
	}
}

// nothingleft checks that no process, file or mount of any pod is left.
func nothingLeft(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 0, "nothingleft")
	var found []string
	if !scriptcmd.Poll(func() bool { found = hostOf(ts).left(); return len(found) == 0 }) {
		ts.Fatalf("left behind:\n%s", strings.Join(found, "\n"))
	}
}

// killpod NAME kills all processes of a pod: its monitor and its pod init.
func killPod(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "killpod NAME")
	podInit := podInitOf(ts, args[0])
	var pid, monitor int
	var name, state string
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", podInit))
	ts.Check(err)
	_, err = fmt.Sscan(string(b), &pid, &name, &state, &monitor)
	ts.Check(err)
	ts.Check(syscall.Kill(monitor, syscall.SIGKILL))
	ts.Check(syscall.Kill(podInit, syscall.SIGKILL))
}

// killinit NAME kills only a pod's pod init.
func killPodInit(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "killinit NAME")
	ts.Check(syscall.Kill(podInitOf(ts, args[0]), syscall.SIGKILL))
}

// killsupervisor NAME kills the supervisor that a pod's pod init has started. Each look for it wakes it: it may hibernate
// again before it is found.
func killSupervisor(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "killsupervisor NAME")
	killed := scriptcmd.Poll(func() bool {
		pid := childOf(podInitOf(ts, args[0]), "podrun-superv")
		return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
	})
	if !killed {
		ts.Fatalf("pod %s has no supervisor", args[0])
	}
}

// killnetstack NAME kills the process that relays a pod's traffic in user space.
func killNetstack(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "killnetstack NAME")
	podInit := podInitOf(ts, args[0])
	killed := scriptcmd.Poll(func() bool {
		pid := childOf(childOf(podInit, "podrun-superv"), "podrun-netstack")
		return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
	})
	if !killed {
		ts.Fatalf("pod %s has no network stack of its own", args[0])
	}
}

// childOf returns the child of a process with a name, or 0.
func childOf(parent int, name string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		var pid, of int
		var comm, state string
		b, _ := os.ReadFile(path)
		n, _ := fmt.Sscan(string(b), &pid, &comm, &state, &of)
		if n == 4 && of == parent && comm == "("+name+")" {
			return pid
		}
	}
	return 0
}

// podInitOf returns the process that listens on a pod's control socket. The query wakes a
// hibernating supervisor.
func podInitOf(ts *testscript.TestScript, name string) int {
	dir, err := os.Open(ts.MkAbs("run/podrun/pods/default/" + name)) // a socket's path may have up to 107 bytes
	ts.Check(err)
	defer dir.Close()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd()), Net: "unix"})
	ts.Check(err)
	defer conn.Close()
	raw, err := conn.SyscallConn()
	ts.Check(err)
	var peer *syscall.Ucred
	ts.Check(raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}))
	ts.Check(err)
	return int(peer.Pid)
}

// terminate sends SIGTERM to every command in the background.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 0, "terminate")
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// archive FILE NAME [PROGRAM ARG...] writes a docker archive with the busybox image, which runs the program
// as root and exposes the ports 8080/tcp and 53/udp. Without one its entrypoint prints a greeting with its arguments.
func archive(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 2, "archive FILE NAME [PROGRAM ARG...]")
	base, err := os.ReadFile(ts.Getenv(rootfsTar))
	ts.Check(err)
	top := tarOf(ts, file{"etc/motd", []byte("hello\n")})
	diffID := func(layer []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(layer)) }
	run := map[string]any{"Entrypoint": []string{"echo", "hello"}, "Cmd": []string{"world"}, "Env": []string{"PATH=/bin", "FLAVOUR=plain"},
		"User": "user", "WorkingDir": "/srv/app", "StopSignal": "SIGUSR1"}
	if len(args) > 2 {
		run = map[string]any{"Entrypoint": args[2:], "Env": []string{"PATH=/bin"}, "StopSignal": "SIGKILL", "ExposedPorts": map[string]any{"8080/tcp": struct{}{}, "53/udp": struct{}{}}}
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": run,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{diffID(base), diffID(top)}},
	})
	ts.Check(err)
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{args[1]}, "Layers": []string{"base.tar", "top.tar"}}})
	ts.Check(err)
	all := tarOf(ts, file{"manifest.json", manifest}, file{"config.json", config}, file{"base.tar", base}, file{"top.tar", top})
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), all, 0o644))
}

type file struct {
	name string
	data []byte
}

func tarOf(ts *testscript.TestScript, files ...file) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		ts.Check(w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data))}))
		_, err := w.Write(f.data)
		ts.Check(err)
	}
	ts.Check(w.Close())
	return b.Bytes()
}
