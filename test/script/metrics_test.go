package script

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// hibernates NAME CMD [ARG...] waits until a pod's supervisor hibernates, and runs a command, which must not
// start it. A supervisor writes its state before it hibernates again.
func hibernates(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 2, "hibernates NAME CMD [ARG...]")
	dir := filepath.Join("run/podrun/pods/default", args[0])
	supervisor := func() int {
		var podInit int
		_, err := fmt.Sscan(ts.ReadFile(filepath.Join("data/podrun/pods/default", args[0], "lock")), &podInit)
		ts.Check(err)
		return childOf(podInit, "podrun-superv")
	}
	if !scriptcmd.Poll(func() bool { return supervisor() == 0 }) {
		ts.Fatalf("the supervisor of pod %s does not hibernate", args[0])
	}
	state := func() os.FileInfo {
		info, err := os.Stat(ts.MkAbs(filepath.Join(dir, "state.json")))
		ts.Check(err)
		return info
	}
	before := state()
	ts.Check(ts.Exec(args[1], args[2:]...))
	if after := state(); supervisor() != 0 || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		ts.Fatalf("%q has started the supervisor of pod %s", args[1:], args[0])
	}
}
