package logs

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
)

// options are the flags of logs.
type options struct {
	container  string
	all        bool // every container
	tail       int
	since      time.Time
	limit      int64 // in bytes for each container; 0: no limit
	timestamps bool
	prefix     bool
	previous   bool
	ignore     bool // print errors and go on
	most       int  // the maximum of containers to follow; 0: no limit
}

// selectedTail is the default number of lines for each of several selected pods, as in kubectl.
const selectedTail = 10

func parseOptions(c *cli.Context) (options, error) {
	selected := c.IsSet("selector")
	switch {
	case c.NArg() == 0 && !selected:
		return options{}, cmdutil.UsageErrorf("logs", "logs takes the names of pods, or --selector")
	case c.NArg() > 0 && selected:
		return options{}, cmdutil.UsageErrorf("logs", "--selector chooses the pods: it does not go with their names")
	case c.Bool("all-containers") && c.String("container") != "":
		return options{}, cmdutil.UsageErrorf("logs", "--all-containers and --container exclude each other")
	case c.Bool("previous") && c.Bool("follow"):
		return options{}, cmdutil.UsageErrorf("logs", "--previous and --follow exclude each other: an earlier instance writes nothing more")
	case c.Int("tail") < -1:
		return options{}, cmdutil.UsageErrorf("logs", "--tail must be a number of lines, or -1 for all")
	case c.IsSet("since") && c.IsSet("since-time"):
		return options{}, cmdutil.UsageErrorf("logs", "--since and --since-time exclude each other")
	case c.IsSet("since") && c.Duration("since") <= 0:
		return options{}, cmdutil.UsageErrorf("logs", "--since must be more than 0")
	case c.Int("max-log-requests") < 0:
		return options{}, cmdutil.UsageErrorf("logs", "--max-log-requests must not be negative")
	case c.Duration("pod-running-timeout") < 0:
		return options{}, cmdutil.UsageErrorf("logs", "--pod-running-timeout must not be negative")
	case c.IsSet("limit-bytes") && c.Int64("limit-bytes") <= 0:
		return options{}, cmdutil.UsageErrorf("logs", "--limit-bytes must be more than 0")
	}
	w := options{
		container: c.String("container"), all: c.Bool("all-containers"), tail: c.Int("tail"), limit: c.Int64("limit-bytes"),
		timestamps: c.Bool("timestamps"), prefix: c.Bool("prefix") || c.Bool("all-pods"), previous: c.Bool("previous"),
		ignore: c.Bool("ignore-errors"), most: c.Int("max-log-requests"),
	}
	if selected && !c.IsSet("tail") {
		w.tail = selectedTail
	}
	if c.IsSet("since") {
		w.since = time.Now().Add(-c.Duration("since"))
	}
	if text := c.String("since-time"); c.IsSet("since-time") {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return options{}, cmdutil.UsageErrorf("logs", "--since-time cannot be %q: it takes a time like 2026-01-02T15:04:05Z", text)
		}
		w.since = at
	}
	return w, nil
}

// logPods returns the pods whose logs are requested.
func logPods(env *cmdutil.Env, c *cli.Context, dirs store.Dirs) ([]store.Pod, error) {
	if !c.IsSet("selector") {
		var pods []store.Pod
		words, err := awaitPodNames(env, c, dirs, !c.Bool("all-pods"))
		if err != nil {
			return nil, err
		}
		for i, word := range words {
			p, err := resource.ExistingPod(dirs, c.String("namespace"), word)
			if err != nil && i == 1 && isContainer(pods[0], word) {
				err = cmdutil.UsageErrorf("logs", "there is no pod %s: a container is named by -c %s", word, word)
			}
			if err != nil {
				return nil, err
			}
			pods = append(pods, p)
		}
		return pods, nil
	}
	selector, err := printers.ParseSelector(c.String("selector"))
	if err != nil {
		return nil, cmdutil.UsageErrorf("logs", "--selector cannot be %q: %v", c.String("selector"), err)
	}
	all, err := dirs.Pods()
	if err != nil {
		return nil, err
	}
	var pods []store.Pod
	for _, p := range all {
		if p.Namespace == c.String("namespace") && p.Exists() && selector.Matches(podclient.MetadataOf(p).Labels) {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		fmt.Fprintf(env.ErrOut, "No resources found in %s namespace.\n", report.Escape(c.String("namespace")))
	}
	return pods, nil
}

// awaitPodNames returns the pods that the words name. It waits for the pods of a workload.
func awaitPodNames(env *cmdutil.Env, c *cli.Context, dirs store.Dirs, one bool) ([]string, error) {
	for end := time.Now().Add(c.Duration("pod-running-timeout")); ; {
		words, err := resource.PodNames(env, dirs, c.String("namespace"), c.Args().Slice(), one)
		soon := errors.Is(err, resource.ErrNoPods) || err == nil && !c.Bool("follow") && pending(env, dirs, c, words)
		if !soon || !time.Now().Before(end) {
			return words, err
		}
		if err := sleep.For(c.Context, podsTime); err != nil {
			return nil, err
		}
	}
}

// pending reports whether no pod of the named workloads has started to run.
func pending(env *cmdutil.Env, dirs store.Dirs, c *cli.Context, words []string) bool {
	none := false
	for _, word := range words {
		if slices.Contains(c.Args().Slice(), word) {
			continue // the user has named the pod itself
		}
		p, err := resource.ExistingPod(dirs, c.String("namespace"), word)
		if err != nil {
			continue
		}
		st, err := podview.StatusOf(p)
		if err == nil && st.Phase != pod.Pending {
			return false
		}
		none = true
	}
	return none
}

// podsTime is the interval at which awaitPodNames checks whether a workload has pods.
const podsTime = 50 * time.Millisecond

// isContainer reports whether a word is the name of a container of a pod.
func isContainer(p store.Pod, word string) bool {
	plan, err := p.Plan()
	if err != nil {
		return false
	}
	_, err = podclient.Named(plan, word)
	return err == nil
}
