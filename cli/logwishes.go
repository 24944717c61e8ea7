package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
)

// wishes are what the flags of logs ask for.
type wishes struct {
	container  string
	all        bool // every container
	tail       int
	since      time.Time
	limit      int64 // bytes of each container; 0: all
	timestamps bool
	prefix     bool
	previous   bool
	ignore     bool // what cannot be shown is no error
	most       int  // containers to be followed at once; 0: any number
}

// selectedTail is how much is shown of each of many pods unless the user says more,
// as by kubectl.
const selectedTail = 10

func logWishes(c *cli.Context) (wishes, error) {
	selected := c.IsSet("selector")
	switch {
	case c.NArg() == 0 && !selected:
		return wishes{}, usageErrorf("logs", "logs takes the names of pods, or --selector")
	case c.NArg() > 0 && selected:
		return wishes{}, usageErrorf("logs", "--selector chooses the pods: it does not go with their names")
	case c.Bool("all-containers") && c.String("container") != "":
		return wishes{}, usageErrorf("logs", "--all-containers and --container exclude each other")
	case c.Bool("previous") && c.Bool("follow"):
		return wishes{}, usageErrorf("logs", "--previous and --follow exclude each other: an earlier instance writes nothing more")
	case c.Int("tail") < -1:
		return wishes{}, usageErrorf("logs", "--tail must be a number of lines, or -1 for all")
	case c.IsSet("since") && c.IsSet("since-time"):
		return wishes{}, usageErrorf("logs", "--since and --since-time exclude each other")
	case c.IsSet("since") && c.Duration("since") <= 0:
		return wishes{}, usageErrorf("logs", "--since must be more than 0")
	case c.Int("max-log-requests") < 0:
		return wishes{}, usageErrorf("logs", "--max-log-requests must not be negative")
	case c.Duration("pod-running-timeout") < 0:
		return wishes{}, usageErrorf("logs", "--pod-running-timeout must not be negative")
	case c.IsSet("limit-bytes") && c.Int64("limit-bytes") <= 0:
		return wishes{}, usageErrorf("logs", "--limit-bytes must be more than 0")
	}
	w := wishes{
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
			return wishes{}, usageErrorf("logs", "--since-time cannot be %q: it takes a time like 2026-01-02T15:04:05Z", text)
		}
		w.since = at
	}
	return w, nil
}

// logPods are the pods whose logs the user wants.
func (f *front) logPods(c *cli.Context, dirs store.Dirs) ([]store.Pod, error) {
	if !c.IsSet("selector") {
		var pods []store.Pod
		words, err := f.podsSoon(c, dirs, !c.Bool("all-pods"))
		if err != nil {
			return nil, err
		}
		for i, word := range words {
			p, err := existing(dirs, c.String("namespace"), word)
			if err != nil && i == 1 && isContainer(pods[0], word) {
				err = usageErrorf("logs", "there is no pod %s: a container is named by -c %s", word, word)
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
		return nil, usageErrorf("logs", "--selector cannot be %q: %v", c.String("selector"), err)
	}
	all, err := dirs.Pods()
	if err != nil {
		return nil, err
	}
	var pods []store.Pod
	for _, p := range all {
		if p.Namespace == c.String("namespace") && p.Exists() && selector.Matches(remote.MetadataOf(p).Labels) {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		fmt.Fprintf(f.err, "No resources found in %s namespace.\n", report.Escape(c.String("namespace")))
	}
	return pods, nil
}

// podsSoon are the pods that the words name; those of a workload are waited for.
func (f *front) podsSoon(c *cli.Context, dirs store.Dirs, one bool) ([]string, error) {
	for end := time.Now().Add(c.Duration("pod-running-timeout")); ; {
		words, err := f.podsOf(dirs, c.String("namespace"), c.Args().Slice(), one)
		soon := errors.Is(err, errNoPods) || err == nil && !c.Bool("follow") && f.pending(dirs, c, words)
		if !soon || !time.Now().Before(end) {
			return words, err
		}
		if err := remote.Pause(c.Context, podsTime); err != nil {
			return nil, err
		}
	}
}

// pending says whether of pods that workloads have none has begun to run.
func (f *front) pending(dirs store.Dirs, c *cli.Context, words []string) bool {
	none := false
	for _, word := range words {
		if slices.Contains(c.Args().Slice(), word) {
			continue // the user's own word
		}
		p, err := existing(dirs, c.String("namespace"), word)
		if err != nil {
			continue
		}
		st, err := reading.StatusOf(p)
		if err == nil && st.Phase != pod.Pending {
			return false
		}
		none = true
	}
	return none
}

// podsTime is between two looks whether a workload has pods.
const podsTime = 50 * time.Millisecond

// isContainer says whether a word that names no pod is a container of one.
func isContainer(p store.Pod, word string) bool {
	plan, err := p.Plan()
	if err != nil {
		return false
	}
	_, err = remote.Named(plan, word)
	return err == nil
}

// missed tells of lines that were rotated away before they could be shown.
func (f *front) missed(name, container string) func() {
	return func() {
		fmt.Fprintf(f.err, "podrun: lines of pod/%s/%s are missing here: it wrote them faster than they could be shown, and its log was rotated\n", name, container)
	}
}
