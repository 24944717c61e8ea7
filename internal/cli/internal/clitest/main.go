// Package clitest is a fake host for tests of commands: real directories, a fake image store, and fake
// supervisors that serve real sockets. Only tests import it.
package clitest

import (
	"flag"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

// Main is a TestMain. run is cli.Run, and entryPoints are cli.EntryPoints, which this package does not import
// so that the tests of package cli can use it.
func Main(m *testing.M, run func(*cmdutil.Env, []string) int, entryPoints map[string]func([]string) int) {
	reexec.Main(entryPoints)
	flag.Parse()
	commandLine = run
	testenv.UserMain(m)
}
