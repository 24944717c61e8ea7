// Package runner runs one pod from its Plan. It is the supervisor: it asks
// lifecycle what to do, does it, and folds what came of it. It is the only room
// that knows libcontainer.
//
// loop.go is the loop, with the kernel behind an interface; engine.go and its
// neighbours are the real kernel; config.go is pure: Plan → runtime spec.
package runner
