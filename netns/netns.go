// Package netns makes the network of a pod's sandbox.
//
// A network namespace is given by a path such as /proc/1/ns/net. Nothing here
// leaves a thread of the process in another namespace than it was in.
package netns

import (
	"fmt"

	"github.com/podrun/podrun/internal/nsthread"
)

// Do runs f on a thread inside the network namespace and throws the thread away.
// Sockets that f opens belong to that namespace for good, and may be used
// anywhere; goroutines that f starts are not inside.
func Do(nsPath string, f func() error) error {
	return nsthread.Do(f, nsPath)
}

// LoopbackUp brings up lo, which a new network namespace has but down. The kernel
// gives it 127.0.0.1/8 and, unless IPv6 is off, ::1/128.
func LoopbackUp(nsPath string) error {
	err := Do(nsPath, func() error {
		var b batch
		b.bringUp(loopback, "lo")
		return b.send()
	})
	if err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}
