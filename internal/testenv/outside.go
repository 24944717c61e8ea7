package testenv

import (
	"fmt"
	"os"
	"testing"
)

// MainOutside is a TestMain for what is to be tested as users meet it, from outside
// any namespace. It runs the package's tests as an ordinary user and, if it was
// started as root, once more as root; the user is chosen as by Main. Nothing may be
// left behind by the process, as with Main.
func MainOutside(m *testing.M) {
	if fuzzing() {
		os.Exit(m.Run())
	}
	refuseStage()
	code, err := outside(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

func outside(m *testing.M) (int, error) {
	if os.Getenv(stepEnv) == "" && os.Geteuid() == 0 {
		if code, err := becomeUser(); err != nil || code != 0 {
			return code, err
		}
	}
	os.Unsetenv(stepEnv)
	return runLeakless(m)
}
