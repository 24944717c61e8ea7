package script

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// killcontroller NAME kills the controller of a workload of the script's user.
func killController(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "killcontroller NAME")
	data := ts.MkAbs(".")
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		b, _ := os.ReadFile(path)
		cmdline := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		if len(cmdline) != 7 || cmdline[1] != "_controller" || cmdline[6] != args[0] || !strings.HasPrefix(cmdline[2], filepath.Dir(data)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		ts.Check(err)
		ts.Check(syscall.Kill(pid, syscall.SIGKILL))
		scriptcmd.Poll(func() bool {
			b, err := os.ReadFile(path)
			return err != nil || len(bytes.TrimSpace(b)) == 0
		})
		return
	}
	ts.Fatalf("%s has no controller", args[0])
}

// firstpod PREFIX VARIABLE sets the variable to the name of a running pod with the prefix.
func firstPod(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 2, "firstpod PREFIX VARIABLE")
	out, err := hostOf(ts).podrun("ps").Output()
	ts.Check(err)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && strings.HasPrefix(fields[0], args[0]) && fields[2] == "Running" {
			ts.Setenv(args[1], fields[0])
			return
		}
	}
	ts.Fatalf("no pod %s… runs:\n%s", args[0], out)
}
