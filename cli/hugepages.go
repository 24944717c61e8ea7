package cli

import (
	"fmt"
	"os"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// refuseHugePages refuses a plan that asks for huge pages which the pod cannot have here:
// can says why. Volumes of them are for root.
func refuseHugePages(plan *pod.Plan, can func(need map[string]int64) error) error {
	if len(plan.Resources.HugePages) == 0 {
		return nil
	}
	if err := can(plan.Resources.HugePages); err != nil {
		return fmt.Errorf("pod %s asks for huge pages: %w", plan.Name, err)
	}
	return refuseHugeVolumes(plan, os.Getuid())
}

func refuseHugeVolumes(plan *pod.Plan, uid int) error {
	for _, v := range plan.Volumes {
		if v.Kind == pod.EmptyDirHugePages && uid != 0 {
			return report.New(report.Failure, "run the pod as root, or let its program ask for huge pages itself, with MAP_HUGETLB or MFD_HUGETLB",
				"volume %s of pod %s is one of huge pages: the kernel lets nobody but root mount those", v.Name, plan.Name)
		}
	}
	return nil
}
