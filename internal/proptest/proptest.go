// Package proptest configures how property tests (rapid) draw their cases.
package proptest

import (
	"flag"
	"os"
	"testing"
)

// seed makes every run of the suite draw the same cases: a passing test keeps passing until the
// code changes. scripts/torture draws other cases.
const seed = "1"

// Main is the TestMain of a package of properties. It sets the number of cases, the same in every
// run, unless -rapid.checks and -rapid.seed (0: random) set others.
func Main(m *testing.M, checks string) {
	flag.Parse()
	asked := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.seed": seed} {
		if asked[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
