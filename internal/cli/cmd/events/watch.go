package events

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/store"
)

// follow prints the existing events, and then each new one. It ends when all named pods are gone.
func (o *options) follow(ctx context.Context, pods []store.Pod) error {
	printed := map[string]int32{} // the count of each event when it was printed
	watched := func() ([]string, error) { return o.watched(pods) }
	return dirwatch.While(ctx, watched, nil, func() (bool, error) {
		var err error
		if pods, err = o.remaining(pods); err != nil {
			return false, err
		}
		all, err := o.Read(pods)
		if err == nil {
			err = o.printChanges(all, printed)
		}
		return len(pods) > 0 || len(o.Words) == 0, err
	})
}

// watched returns the directories in which new events or pods appear.
func (o *options) watched(pods []store.Pod) (dirs []string, err error) {
	if len(o.Words) == 0 {
		if dirs, err = o.Dirs.WatchDirs(); err != nil {
			return nil, err
		}
	}
	for _, p := range pods {
		dirs = append(dirs, p.RuntimeDir(), p.DataDir())
	}
	return dirs, nil
}

// remaining returns the pods that are still watched.
func (o *options) remaining(pods []store.Pod) ([]store.Pod, error) {
	if len(o.Words) == 0 {
		return o.Pods()
	}
	return slices.DeleteFunc(pods, func(p store.Pod) bool { return !p.Exists() }), nil
}

// printChanges prints events that are new or have a higher count, and removes dropped ones from printed.
func (o *options) printChanges(all []corev1.Event, printed map[string]int32) error {
	var news []corev1.Event
	current := map[string]int32{}
	for _, e := range all {
		key := e.Namespace + "/" + e.Name
		if current[key] = e.Count; printed[key] != e.Count {
			news = append(news, e)
		}
	}
	clear(printed)
	for key, n := range current {
		printed[key] = n
	}
	if len(news) == 0 {
		return nil
	}
	if o.format != "json" && o.format != "yaml" {
		return o.printRows(news)
	}
	for i := range news {
		text, err := printers.PrintEvent(&news[i], printers.Format(o.format))
		if err != nil {
			return err
		}
		if o.format == "yaml" {
			fmt.Fprintln(o.Env.Out, "---")
		}
		if err := o.Env.WriteSafe(text); err != nil {
			return err
		}
	}
	return nil
}
