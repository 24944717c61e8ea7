package reexec

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/protocol"
)

// EnterEnv returns the variables that instruct the constructor what to enter and which ids to map.
func EnterEnv(enter string) []string {
	return append([]string{protocol.EnvEnter + "=" + enter}, IDEnv()...)
}

// IDEnv returns the variables for the ids of the user's namespace: 0 is the user, 1 and up are the subordinate ranges. If these
// cannot be mapped, 0 is the only id. Root has no such variables.
func IDEnv() []string {
	if os.Geteuid() == 0 {
		return nil
	}
	m := host.FindMapping()
	return []string{
		protocol.EnvUIDMap + "=" + idMap(os.Geteuid(), m.UIDs),
		protocol.EnvGIDMap + "=" + idMap(os.Getegid(), m.GIDs),
		protocol.EnvIDTools + "=" + m.Tools,
	}
}

// idMap formats a map for newuidmap and uid_map: ID-INSIDE ID-OUTSIDE COUNT, for each range.
func idMap(self int, ranges []host.Range) string {
	words := []string{"0", strconv.Itoa(self), "1"}
	next := uint64(1)
	for _, r := range ranges {
		words = append(words, fmt.Sprint(next), fmt.Sprint(r.First), fmt.Sprint(r.Count))
		next += r.Count
	}
	return strings.Join(words, " ")
}
