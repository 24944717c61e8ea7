package cli

import (
	"fmt"

	"github.com/podrun/podrun/pod"
)

// refuseHugePages refuses a plan that asks for huge pages which the pod cannot have here:
// can says why.
func refuseHugePages(plan *pod.Plan, can func(need map[string]int64) error) error {
	if len(plan.Resources.HugePages) == 0 {
		return nil
	}
	if err := can(plan.Resources.HugePages); err != nil {
		return fmt.Errorf("pod %s asks for huge pages: %w", plan.Name, err)
	}
	return nil
}
