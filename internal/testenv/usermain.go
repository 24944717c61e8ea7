package testenv

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// UserMain is a TestMain for tests of the built binary: they run as an ordinary
// user, chosen as by Main, but in the namespaces they were started in.
func UserMain(m *testing.M) {
	refuseStage()
	if os.Geteuid() != 0 {
		os.Unsetenv(stepEnv)
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // the parent-death signal is sent when the thread that forked ends
	code, err := becomeUser()
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = 1
	}
	os.Exit(code)
}
