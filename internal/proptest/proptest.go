// Package proptest sets how tests of random cases (rapid) draw them.
package proptest

import (
	"flag"
	"os"
	"testing"
)

// seed makes every run of the suite draw the same cases: what was green stays green until
// the code changes. scripts/torture draws others.
const seed = "1"

// Main is the TestMain of a package of properties: each holds over as many cases as are
// said, the same in every run, unless -rapid.checks and -rapid.seed (0: random) ask for
// others.
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
