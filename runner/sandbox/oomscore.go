package sandbox

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/podrun/podrun/internal/pod"
)

const oomScoreFile = "/proc/self/oom_score_adj"

// minOOMScore is the kernel's minimum: never killed.
const minOOMScore = -1000

// OOMScoreFloor returns the lowest oom_score_adj that a container can be given.
var OOMScoreFloor = sync.OnceValue(findOOMScoreFloor)

// findOOMScoreFloor tries values. Without CAP_SYS_RESOURCE the lowest value allowed is not the process's own,
// but the last value that a process with the capability has set, for this process or for an ancestor
// (__set_oom_adj in fs/proc/base.c). No file shows it. In a unit of a user it is systemd's value for the user's
// manager.
func findOOMScoreFloor() int {
	score := OwnOOMScore()
	floor := minOOMScore + sort.Search(score-minOOMScore, func(n int) bool { return writeOOMScore(minOOMScore+n) == nil })
	if writeOOMScore(score) != nil {
		return score
	}
	return floor
}

// OwnOOMScore returns the oom_score_adj of this process, -1000 to 1000; 0 if it cannot be read.
func OwnOOMScore() int {
	b, err := os.ReadFile(oomScoreFile)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

func writeOOMScore(score int) error {
	return os.WriteFile(oomScoreFile, []byte(strconv.Itoa(score)), 0)
}

// warnOOMScores adds one warning that lists the containers without the oom_score_adj that the kubelet would
// set.
func (s *Sandbox) warnOOMScores() {
	if text := oomScoreWarning(s.Plan, OOMScoreFloor()); text != "" {
		s.addWarning(text)
	}
}

// oomScoreWarning returns the text of the warning, or "". It is pure.
func oomScoreWarning(plan *pod.Plan, floor int) string {
	var names []string
	least := floor
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			if c := &list[i]; c.OOMScoreAdj < floor {
				names = append(names, c.Name)
				least = min(least, c.OOMScoreAdj)
			}
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("oom_score_adj is %d instead of %d (containers %s): only root can give less", floor, least, strings.Join(names, ", "))
}
