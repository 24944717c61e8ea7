package follow

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/workload"
)

// rolloutStatus returns what a workload still waits for, in the words of kubectl rollout status
// (pkg/polymorphichelpers/rollout_status.go of kubectl), or "" if it is rolled out.
func rolloutStatus(v *resource.WorkloadInfo, d *workload.Decision) string {
	n, c := v.Spec.Replicas, d.Counts
	c0, stuck := v.State.Condition("Progressing")
	switch k := v.Spec.Kind; {
	case k == pod.KindJob || k == pod.KindCronJob || d.Settled:
		return ""
	case stuck && v.State.Stuck():
		return c0.Message
	case v.Spec.Paused:
		return "it is paused: its pods stay as they are"
	case remaining(v, d) != "":
		return "waiting for the rollout to finish: " + remaining(v, d)
	case c.Ready < n:
		return fmt.Sprintf("waiting for %d pods to be ready", n-c.Ready)
	case c.Replicas > n:
		return fmt.Sprintf("%d replicas are pending termination", c.Replicas-n)
	}
	return "waiting for the rollout to finish"
}

// ReportRollout prints what a workload waits for, if that differs from last.
func ReportRollout(env *cmdutil.Env, v *resource.WorkloadInfo, last string) string {
	if v.State.Generation != v.Object.Revision {
		return last // its controller has not read it yet
	}
	d := v.Decide(time.Now())
	text := rolloutStatus(v, &d)
	if text != "" && text != last {
		fmt.Fprintf(env.ErrOut, "podrun: %s: %s\n", v.Name(), text)
	}
	return text
}

// Reached returns a word if a workload has reached the state that is waited for, "" if it has not, or an
// error if it never will.
func Reached(v *resource.WorkloadInfo, wait bool) (string, error) {
	if v.State.Generation != v.Object.Revision {
		return "", nil // its controller has not read it yet
	}
	d := v.Decide(time.Now())
	over, well := v.State.Ended()
	switch {
	case over && well:
		return "complete", nil
	case over:
		c, _ := v.State.Condition("Failed")
		return "", &exitcode.Error{Code: max(v.State.Job.ExitCode, exitcode.Failure), Err: report.New(report.Failure, "podrun get pods shows its pods, podrun logs their output", "%s failed: %s", v.Name(), withMessage(c.Reason, c.Message))}
	case v.Spec.Kind == pod.KindCronJob:
		return "scheduled", nil
	case v.Spec.Kind == pod.KindJob && v.Spec.Job.Suspend:
		return "suspended", nil
	case v.State.CreateError != "":
		return "", report.New(report.Failure, fmt.Sprintf("podrun tries again; podrun down %s removes it", v.Name()), "%s: cannot create its pods: %s", v.Name(), v.State.CreateError)
	case wait && v.State.Stuck():
		c, _ := v.State.Condition("Progressing")
		return "", report.New(report.Failure, fmt.Sprintf("podrun get pods and podrun logs show why; podrun down %s removes it", v.Name()), "%s: %s", v.Name(), c.Message)
	case wait && v.Spec.Kind != pod.KindJob && d.Settled:
		return "available", nil
	case !wait && allRunning(v, &d):
		return "running", nil
	}
	return "", nil
}

// allRunning reports whether all pods of the newest version that can exist now are running.
func allRunning(v *resource.WorkloadInfo, d *workload.Decision) bool {
	if len(d.Make) > 0 {
		return false
	}
	n := 0
	for i := range v.Pods {
		p := &v.Pods[i]
		if !IsCurrent(v, p) {
			continue
		}
		if !p.Phase.Terminal() && !v.Status[p.Name].AllStarted() {
			return false
		}
		n++
	}
	return n > 0 || v.Spec.Replicas == 0 && v.Spec.Kind != pod.KindJob
}

// IsCurrent reports whether a pod has the object's current version, and will stay.
func IsCurrent(v *resource.WorkloadInfo, p *workload.Pod) bool {
	return !p.Stopping && (p.Revision == "" || p.Revision == v.Spec.Revision)
}

// WithLastOutput adds the last output of the most recently failed pod to a failure.
func WithLastOutput(env *cmdutil.Env, v *resource.WorkloadInfo, err error) error {
	var last *workload.Pod
	for i := range v.Pods {
		if p := &v.Pods[i]; p.Phase == pod.Failed && (last == nil || p.Ended.After(last.Ended)) {
			last = p
		}
	}
	if last == nil {
		return err
	}
	reported := withLastLines(v.StoredPods[last.Name], v.Status[last.Name], err)
	if e := exitcode.As(err); e != nil {
		return &exitcode.Error{Code: e.Code, Err: reported}
	}
	return reported
}

// JobFailures returns the failures of Jobs that are over.
func JobFailures(env *cmdutil.Env, dirs store.Dirs, list []store.Workload) error {
	var errs []error
	for _, w := range list {
		v, err := resource.LoadWorkload(dirs, w)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = Reached(v, true)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
