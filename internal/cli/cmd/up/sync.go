package up

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/filesync"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// watchFlags returns the flags of --watch.
func watchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "watch", Usage: "in the foreground: apply the files again whenever they change"},
		&cli.StringSliceFlag{Name: "sync", Usage: "with --watch: copy changed files into a container: `RULE` is LOCAL:POD[/CONTAINER]:PATH"},
	}
}

// syncFlag is a value of --sync.
type syncFlag struct {
	pod string
	api.SyncRule
}

// parseSyncFlag parses LOCAL:POD[/CONTAINER]:PATH. LOCAL is relative to the working directory.
func parseSyncFlag(text string) (f syncFlag, err error) {
	i := strings.LastIndexByte(text, ':')
	j := strings.LastIndexByte(text[:max(i, 0)], ':')
	if i < 0 || j < 0 {
		return f, cmdutil.UsageErrorf("up", "--sync cannot be %q: it is LOCAL:POD:PATH, as in ./src:web:/app", text)
	}
	f.Path, f.Target, f.Action, f.InitialSync = text[:j], text[i+1:], api.SyncFiles, true
	f.pod, f.Container, _ = strings.Cut(text[j+1:i], "/")
	switch {
	case f.Path == "" || f.pod == "":
		err = cmdutil.UsageErrorf("up", "--sync cannot be %q: it is LOCAL:POD:PATH, as in ./src:web:/app", text)
	case !path.IsAbs(f.Target):
		err = cmdutil.UsageErrorf("up", "--sync cannot be %q: the path in the container must be absolute, not %q", text, f.Target)
	default:
		f.Path, err = filepath.Abs(f.Path)
	}
	return f, err
}

// applySync finds what --watch copies into pods: what --sync and annotations say. The containers keep these files when they
// are restarted.
func (o *runOptions) applySync(pods []manifest.Object) error {
	if !o.watch {
		return nil
	}
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	o.rules = nil
	for _, f := range o.sync {
		if !slices.ContainsFunc(pods, func(p manifest.Object) bool { return p.Pod.Name == f.pod }) {
			return report.New(report.Usage, "name a Pod of the files", "--sync: there is no pod %q in the files", f.pod)
		}
	}
	for i := range pods {
		p := pods[i].Pod
		rules, err := podutil.ParseSync(p.Annotations[podutil.AnnotationSync])
		if err != nil {
			return err // validated before
		}
		for _, f := range o.sync {
			if f.pod == p.Name {
				rules = append(rules, f.SyncRule)
			}
		}
		list, err := filesync.NewRules(dirs.Pod(p.Namespace, p.Name), rules, filepath.Dir(pods[i].File))
		if err == nil {
			err = checkContainers(&pods[i], list)
		}
		if err != nil {
			return err
		}
		if len(list) > 0 {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[podutil.AnnotationKeepFiles] = "true"
		}
		o.rules = append(o.rules, list...)
	}
	return nil
}

// checkContainers returns an error if a rule is for a container that the pod does not have.
func checkContainers(o *manifest.Object, rules []filesync.Rule) error {
	for _, r := range rules {
		if r.Container != "" && !slices.Contains(podutil.ContainerNames(o.Pod), r.Container) {
			return report.New(report.Usage, "", "%s: there is no container %q to copy %s into", resource.Location(o), r.Container, r.Path)
		}
	}
	return nil
}

// rebuild builds the images whose inputs have changed, and replaces their pods.
func (w *fileWatcher) rebuild(ctx context.Context, p store.Pod) error {
	if err := w.apply(ctx); err != nil {
		return fmt.Errorf("rebuild pod %s: %w", p.Name, err)
	}
	return nil
}

// syncOf returns the rules for pods that were started.
func (w *fileWatcher) syncOf(pods []*podup.Target) (list []filesync.Rule) {
	for _, r := range w.rules {
		if slices.ContainsFunc(pods, func(p *podup.Target) bool { return p.Pod == r.Pod }) {
			list = append(list, r)
		}
	}
	return list
}
