package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

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

// options are the command line of logs.
type options struct {
	env       *cmdutil.Env
	dirs      store.Dirs
	namespace string

	words      []string
	selected   bool // by selector, instead of words
	selector   printers.Selector
	allPods    bool          // of a workload
	podTimeout time.Duration // for the first pod of a workload

	container     string
	allContainers bool

	follow     bool
	previous   bool
	tail       int       // lines; -1: all
	since      time.Time // zero: all
	limited    bool
	limit      int64 // in bytes for each container
	maxStreams int   // the maximum of containers to follow; 0: no limit

	timestamps   bool
	prefix       bool
	raw          bool // containers' output may reach a terminal unchanged
	ignoreErrors bool // print errors and go on
}

// selectedTail is the default number of lines for each of several selected pods, as in kubectl.
const selectedTail = 10

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) (err error) {
	o.namespace, o.words, o.selected = c.String("namespace"), c.Args().Slice(), c.IsSet("selector")
	o.allPods, o.podTimeout = c.Bool("all-pods"), c.Duration("pod-running-timeout")
	o.container, o.allContainers = c.String("container"), c.Bool("all-containers")
	o.follow, o.previous, o.tail = c.Bool("follow"), c.Bool("previous"), c.Int("tail")
	o.limited, o.limit, o.maxStreams = c.IsSet("limit-bytes"), c.Int64("limit-bytes"), c.Int("max-log-requests")
	o.timestamps, o.prefix = c.Bool("timestamps"), c.Bool("prefix") || o.allPods
	o.raw, o.ignoreErrors = c.Bool("raw"), c.Bool("ignore-errors")
	if o.selected && !c.IsSet("tail") {
		o.tail = selectedTail
	}
	if o.selector, err = printers.ParseSelector(c.String("selector")); err != nil {
		return cmdutil.UsageErrorf("logs", "--selector cannot be %q: %v", c.String("selector"), err)
	}
	ago, since := c.Duration("since"), c.IsSet("since")
	switch {
	case since && c.IsSet("since-time"):
		return cmdutil.UsageErrorf("logs", "--since and --since-time are mutually exclusive")
	case since && ago <= 0:
		return cmdutil.UsageErrorf("logs", "--since must be more than 0")
	case since:
		o.since = time.Now().Add(-ago)
	case c.IsSet("since-time"):
		if o.since, err = time.Parse(time.RFC3339, c.String("since-time")); err != nil {
			return cmdutil.UsageErrorf("logs", "--since-time cannot be %q: use a time such as 2026-01-02T15:04:05Z", c.String("since-time"))
		}
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	switch {
	case len(o.words) == 0 && !o.selected:
		return cmdutil.UsageErrorf("logs", "logs requires the names of pods, or --selector")
	case len(o.words) > 0 && o.selected:
		return cmdutil.UsageErrorf("logs", "only a selector (-l) or a POD name is allowed")
	case o.allContainers && o.container != "":
		return cmdutil.UsageErrorf("logs", "--all-containers and --container are mutually exclusive")
	case o.previous && o.follow:
		return cmdutil.UsageErrorf("logs", "--previous and --follow are mutually exclusive: an earlier instance writes nothing more")
	case o.tail < -1:
		return cmdutil.UsageErrorf("logs", "--tail must be a number of lines, or -1 for all")
	case o.maxStreams < 0:
		return cmdutil.UsageErrorf("logs", "--max-log-requests must not be negative")
	case o.podTimeout < 0:
		return cmdutil.UsageErrorf("logs", "--pod-running-timeout must not be negative")
	case o.limited && o.limit <= 0:
		return cmdutil.UsageErrorf("logs", "--limit-bytes must be more than 0")
	}
	return nil
}

// pods returns the pods whose logs are requested.
func (o *options) pods(ctx context.Context) ([]store.Pod, error) {
	if o.selected {
		return o.selectedPods()
	}
	words, err := o.awaitPodNames(ctx)
	if err != nil {
		return nil, o.lineCount(err)
	}
	var pods []store.Pod
	for i, word := range words {
		p, err := resource.ExistingPod(o.dirs, o.namespace, word)
		if err != nil && i == 1 && isContainer(pods[0], word) {
			err = cmdutil.UsageErrorf("logs", "pod %s not found: use -c %s for a container", word, word)
		}
		if err != nil {
			return nil, o.lineCount(err)
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// lineCount gives an error about a pod that does not exist another hint if the namespace looks like a number of lines, as
// the -n of docker logs and tail.
func (o *options) lineCount(err error) error {
	if _, number := strconv.Atoi(o.namespace); number != nil || !errors.Is(err, cmdutil.ErrNotFound) {
		return err
	}
	return report.New(report.Failure, "-n names a namespace; --tail="+o.namespace+" prints the last "+o.namespace+" lines", "%w", err)
}

func (o *options) selectedPods() ([]store.Pod, error) {
	pods, err := resource.ListPods(o.dirs, o.namespace, false)
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(p store.Pod) bool { return !o.selector.Matches(podview.MetadataOf(p).Labels) })
	if len(pods) == 0 {
		fmt.Fprintln(o.env.ErrOut, report.Escape(podview.NoResources(o.namespace, false)))
	}
	return pods, nil
}

// awaitPodNames returns the pods that the words name. It waits for the pods of a workload.
func (o *options) awaitPodNames(ctx context.Context) ([]string, error) {
	for end := time.Now().Add(o.podTimeout); ; {
		words, err := resource.PodNames(o.env, o.dirs, o.namespace, o.words, !o.allPods)
		soon := errors.Is(err, resource.ErrNoPods) || err == nil && !o.follow && o.pending(words)
		if !soon || !time.Now().Before(end) {
			return words, err
		}
		if err := sleep.For(ctx, podsTime); err != nil {
			return nil, err
		}
	}
}

// podsTime is the interval at which awaitPodNames checks whether a workload has pods.
const podsTime = 50 * time.Millisecond

// pending reports whether no pod of the named workloads has started to run.
func (o *options) pending(words []string) bool {
	none := false
	for _, word := range words {
		if slices.Contains(o.words, word) {
			continue // the user has named the pod itself
		}
		p, err := resource.ExistingPod(o.dirs, o.namespace, word)
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

// isContainer reports whether a word is the name of a container of a pod.
func isContainer(p store.Pod, word string) bool {
	plan, err := p.Plan()
	if err != nil {
		return false
	}
	_, err = podclient.Named(plan, word)
	return err == nil
}
