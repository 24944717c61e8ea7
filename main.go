// Command podrun runs Kubernetes Pods on one machine, without root and without a
// daemon.
package main

import (
	"maps"
	"os"

	"github.com/podrun/podrun/cli"
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/stage/embed"
	_ "github.com/podrun/podrun/internal/stage/hasten" // its constructor
)

func main() {
	stages := cli.Stages()
	maps.Copy(stages, embed.Stages())
	stage.Main(stages)
	os.Exit(cli.Main(os.Args, os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
