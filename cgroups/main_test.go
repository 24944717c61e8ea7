package cgroups

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/testenv"
)

// partEnv makes the test binary act as a process of a container.
const partEnv = "_PODRUN_CGROUPS_PART"

// TestMain joins the subtree before it enters its namespaces, as podrun's CLI does: from inside, a
// process cannot move processes that are outside.
func TestMain(m *testing.M) {
	switch os.Getenv(partEnv) {
	case "":
	case "sleep":
		wait()
	case "hog":
		hog()
	case "fork":
		fork()
	}
	if _, err := delegation.FindAndPrepare(); err != nil {
		fmt.Fprintln(os.Stderr, "without a subtree:", err)
	}
	testenv.Main(m)
}

// wait blocks until SIGKILL.
func wait() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2) // otherwise Go reports a deadlock
	<-c
}

// hog allocates memory, page by page, until it is killed.
func hog() {
	var held [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
	}
}

// fork starts sleepers until the kernel refuses, prints their number and blocks.
func fork() {
	for n := 0; ; n++ {
		if err := play("sleep").Start(); err != nil {
			fmt.Printf("%d started, then: %v\n", n, err)
			wait()
		}
	}
}
