package wait

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// waitCondition is the condition to wait for.
type waitCondition struct {
	text    string // as the user wrote it
	gone    bool   // wait for the object's removal
	created bool   // wait for its creation
	implied bool   // --for is not set: it depends on the kind
	phase   bool   // the condition is a phase
	met     func(*pod.Status) bool
	object  printers.ObjectTest // of the form in the Kubernetes API; nil: met decides
	spec    bool                // object reads what can change after a pod has ended
}

// parseWaitCondition parses the value of --for.
func parseWaitCondition(text string) (waitCondition, error) {
	kind, rest, _ := strings.Cut(text, "=")
	g := waitCondition{text: text}
	switch strings.ToLower(kind) {
	case "delete", "create":
		g.gone, g.created = strings.EqualFold(kind, "delete"), strings.EqualFold(kind, "create")
		if rest == "" {
			return g, nil
		}
	case "condition":
		name, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		if name != "" && status != "" {
			g.met, g.object = func(st *pod.Status) bool { return hasCondition(st, name, status) }, printers.ConditionTest(name, status)
			return g, nil
		}
	case "jsonpath":
		var err error
		if g.object, err = printers.ParseJSONPathTest(rest); err != nil {
			return g, cmdutil.UsageErrorf("wait", "--for=jsonpath: %s", err)
		}
		g.spec = !strings.HasPrefix(strings.TrimLeft(rest, "'\"{."), "status")
		return g, nil
	case "phase":
		for _, phase := range []pod.Phase{pod.Pending, pod.Running, pod.Succeeded, pod.Failed} {
			if string(phase) == rest {
				g.met, g.phase = func(st *pod.Status) bool { return st.Phase == phase }, true
				return g, nil
			}
		}
		return g, cmdutil.UsageErrorf("wait", "a pod's phase must be Pending, Running, Succeeded or Failed, not %q", rest)
	}
	return g, cmdutil.UsageErrorf("wait", "unrecognized condition: %q: --for must be condition=TYPE[=STATUS], jsonpath='{PATH}'[=VALUE], phase=PHASE, create or delete", text)
}

func hasCondition(st *pod.Status, name, status string) bool {
	for _, c := range st.Conditions {
		if strings.EqualFold(c.Type, name) {
			return strings.EqualFold(c.Status, status)
		}
	}
	return false
}

// forKind returns the condition for a workload of a kind, with the default of a Deployment or a Job if
// --for is not set.
func (g waitCondition) forKind(kind pod.ObjectKind) waitCondition {
	if !g.implied || kind == "" {
		return g
	}
	condition := "Available"
	if kind == pod.KindJob {
		condition = "Complete"
	}
	g.text = "condition=" + condition
	g.met = func(st *pod.Status) bool { return hasCondition(st, condition, "True") }
	return g
}

// await returns when the pod meets the condition; with once, after one check.
func (g waitCondition) await(ctx context.Context, p store.Pod, once bool) error {
	st, err := podview.StatusOf(p)
	if err == nil && !g.met(st) && !once && !st.Phase.Terminal() {
		st, err = podclient.Follow(ctx, p, g.met)
	}
	switch {
	case err != nil:
		return err
	case g.met(st):
		return nil
	case once && !st.Phase.Terminal():
		return context.DeadlineExceeded
	}
	return g.ended(p, st)
}

// ended returns the error for a pod that has ended and can no longer meet the condition.
func (g waitCondition) ended(p store.Pod, st *pod.Status) error {
	return report.New(report.Failure, "podrun logs and podrun events show why", "pod %s has ended (%s) without meeting %s", p.Name, st.Phase, g.text)
}

// awaitWorkload waits until a workload meets the condition of `podrun wait`.
func (g waitCondition) awaitWorkload(ctx context.Context, dirs store.Dirs, w store.Workload, once bool) error {
	return poll(ctx, once, func() (bool, error) {
		v, err := resource.LoadWorkload(dirs, w)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, report.New(report.Failure, "", "%s %s was removed", w.Kind, w.Name)
		case err != nil:
			return false, err
		case v.State.Generation == v.Object.Revision && g.met(v.Conditions()):
			return true, nil
		}
		if over, _ := v.State.Ended(); over {
			return false, report.New(report.Failure, "podrun get "+v.Name()+" and podrun logs show why", "%s has ended without meeting %s", v.Name(), g.text)
		}
		return false, nil
	})
}

// poll calls check until it returns true or an error; with once, one time. What is not met then has the error
// context.DeadlineExceeded.
func poll(ctx context.Context, once bool, check func() (bool, error)) error {
	for {
		switch ok, err := check(); {
		case ok || err != nil:
			return err
		case once:
			return context.DeadlineExceeded
		}
		if err := sleep.For(ctx, 10*podclient.PollTime); err != nil {
			return err
		}
	}
}
