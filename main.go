// Command podrun runs Kubernetes Pods on one machine, without root and without a
// daemon.
package main

import (
	"maps"
	"os"

	"github.com/podrun/podrun/internal/cli"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/reexec"
	_ "github.com/podrun/podrun/internal/reexec/fastpath"
)

func main() {
	entryPoints := cli.EntryPoints()
	maps.Copy(entryPoints, programs.EntryPoints())
	reexec.Main(entryPoints)
	os.Exit(cli.Main(os.Args, os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
