package testenv

import (
	"os"
	"slices"
	"strings"
)

// fuzzing is whether the test binary makes up inputs for a fuzz target, or tries them for one that
// does: a parser needs no namespaces, and the corpus is the caller's.
func fuzzing() bool {
	return slices.ContainsFunc(os.Args[1:], func(arg string) bool {
		return strings.HasPrefix(arg, "-test.fuzz=") || strings.HasPrefix(arg, "-test.fuzzworker")
	})
}
