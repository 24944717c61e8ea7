package podclient

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// IsEnding reports whether a living pod is being stopped or removed. The plan of a pod is the first file that its
// removal deletes, and the last one that its creation writes.
func IsEnding(p store.Pod) bool {
	if !p.Alive() {
		return false
	}
	if p.Removing() || !p.Exists() {
		return true
	}
	st, err := p.Status()
	return err == nil && st.Deleting
}

// endInterval is how often the state of a pod is read whose end is waited for. Its end itself is noticed at once.
const endInterval = 100 * time.Millisecond

// AwaitEnd waits until a pod that another command stops or removes is gone. It returns at once if the pod runs or
// has ended, and gives up if the pod is locked but has no plan for the time gone. It does not change how long the pod may
// take, and reports to out which containers still run.
func AwaitEnd(ctx context.Context, p store.Pod, gone time.Duration, out io.Writer) error {
	if !IsEnding(p) {
		return nil
	}
	defer ReportWaiting(out, "waiting for the end of", p, nil, nil)()
	lacksPlan := time.Time{} // since when it has no plan
	for IsEnding(p) {
		if p.Exists() {
			lacksPlan = time.Time{}
		} else if lacksPlan.IsZero() {
			lacksPlan = time.Now()
		} else if time.Since(lacksPlan) > gone {
			return nil
		}
		if err := pollGone(ctx, p, endInterval); err != nil {
			return fmt.Errorf("pod %s is still being removed: %w", p.Name, context.Cause(ctx))
		}
	}
	return nil
}
