package stage

import (
	"os"
	"slices"
	"strings"
)

// environ is the user's environment without what this program and libcontainer say to
// the processes that they start: no stage may be misled by what a user has set.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "_PODRUN_") || strings.HasPrefix(v, "_LIBCONTAINER_")
	})
}
