// Package podevents reads the events of pods.
package podevents

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	manifeststatus "github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/store"
)

// View selects events.
type View struct {
	Env           *cmdutil.Env
	Dirs          store.Dirs
	Words         []string // the pods that the user named
	Namespace     string
	AllNamespaces bool
	Types         []string // nil: all
}

// Pods returns the pods whose events are printed.
func (v *View) Pods() ([]store.Pod, error) {
	if len(v.Words) == 0 {
		return resource.ListPods(v.Dirs, v.Namespace, v.AllNamespaces)
	}
	var pods []store.Pod
	words, err := resource.PodNames(v.Env, v.Dirs, v.Namespace, v.Words, false)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		p, err := resource.ExistingPod(v.Dirs, v.Namespace, word)
		if err != nil {
			return nil, err
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// Read returns the events of pods, the latest last. A pod that is removed meanwhile has none.
func (v *View) Read(pods []store.Pod) ([]corev1.Event, error) {
	var all []corev1.Event
	for _, p := range pods {
		events, err := p.Events()
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			continue
		}
		text, err := p.Manifest()
		if err != nil {
			if !p.Exists() {
				continue
			}
			return nil, err
		}
		m, err := manifest.Unmarshal(text)
		if err != nil {
			return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
		}
		all = append(all, manifeststatus.Events(m, events)...)
	}
	all = slices.DeleteFunc(all, func(e corev1.Event) bool {
		return v.Types != nil && !slices.ContainsFunc(v.Types, func(t string) bool { return strings.EqualFold(t, e.Type) })
	})
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return all, nil
}
