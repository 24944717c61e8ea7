package userns

import (
	"os"
	"os/signal"
	"syscall"
)

// StopSignals are the keeper's SIGUSR1, which it repeats until the pod has ended, and
// what systemd or a user may send. doze.c has them too.
var StopSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}

// Stops is where a supervisor receives them.
var Stops = make(chan os.Signal, 1)

// Go unblocks SIGTERM before any of its code runs, and ends at one that nobody
// listens to. This package needs little, so it is ready before most others are.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "_supervisor" {
		signal.Notify(Stops, StopSignals...)
	}
}
