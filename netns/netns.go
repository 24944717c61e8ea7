// Package netns prepares the network namespace of a pod: its loopback device and what unprivileged
// users may do in it. The packages below it connect the namespace.
//
// A network namespace is given by a path such as /proc/1/ns/net.
package netns

import (
	"fmt"

	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/nsthread"
)

// LoopbackUp brings up lo, which is down in a new network namespace. The kernel gives it
// 127.0.0.1/8 and, unless IPv6 is off, ::1/128.
func LoopbackUp(nsPath string) error {
	err := nsthread.Do(func() error {
		var b nlbatch.Batch
		b.SetUp(nlbatch.LoopbackIndex, "lo")
		return b.Send()
	}, nsPath)
	if err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}
