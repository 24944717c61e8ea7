package image

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/podrun/podrun/internal/stage"
)

// removeTrees removes directories with files of the user's subordinate ids.
func removeTrees(dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	cmd := stage.Command(stage.Spec{Name: removeStage, Args: dirs, Userns: true, Net: true})
	bare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remove layers: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// bare takes the user's environment from a stage, which has no use for it.
func bare(cmd *exec.Cmd) {
	var own []string
	for _, kv := range cmd.Env {
		if strings.HasPrefix(kv, "_PODRUN_") {
			own = append(own, kv)
		}
	}
	cmd.Env = own
}
