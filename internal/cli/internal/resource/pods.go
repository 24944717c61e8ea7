package resource

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/workload"
)

// ResolvePod returns the directory of a pod that the user has named, whether it exists or not. Invalid
// names never reach the file system: they are reported as pods that do not exist.
func ResolvePod(dirs store.Dirs, namespace, word string) (store.Pod, error) {
	name := word
	for _, kind := range []string{"pod/", "pods/", "po/"} {
		if rest, ok := strings.CutPrefix(word, kind); ok {
			name = rest
			break
		}
	}
	if kind, _, known := kindnames.ParseObjects([]string{name}); known && strings.Contains(name, "/") {
		return store.Pod{}, report.New(report.Failure, "podrun get "+kindnames.Of(kind)+" lists them, podrun ps lists the pods", "%q does not name a pod", word)
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return store.Pod{}, notFoundError(namespace, name)
	}
	return dirs.Pod(namespace, name), nil
}

// ExistingPod is ResolvePod for a pod that exists.
func ExistingPod(dirs store.Dirs, namespace, word string) (store.Pod, error) {
	p, err := ResolvePod(dirs, namespace, word)
	if err == nil && !p.Exists() {
		err = PodNotFound(dirs, p)
	}
	return p, err
}

// PodNotFound returns the error for a pod that does not exist. The error mentions a workload of that
// name.
func PodNotFound(dirs store.Dirs, p store.Pod) error {
	for _, kind := range pod.Workloads() {
		if w, err := dirs.Workload(kind, p.Namespace, p.Name); err == nil {
			if _, err := w.Object(); err == nil {
				return report.New(report.Failure, "did you mean "+kindnames.Of(kind)+"/"+p.Name+"?", "pod %q %w", p.Name, cmdutil.ErrNotFound)
			}
		}
	}
	return notFoundError(p.Namespace, p.Name)
}

func notFoundError(namespace, name string) error {
	kind, _, _ := strings.Cut(name, "/")
	if namespace == podclient.DefaultNamespace {
		return report.New(report.Failure, cmp.Or(kindnames.UnsupportedHint(kind), "podrun ps lists the pods"), "pod %q %w", name, cmdutil.ErrNotFound)
	}
	return report.New(report.Failure, "podrun ps -A lists the pods of all namespaces", "pod %q %w in namespace %q", name, cmdutil.ErrNotFound, namespace)
}

// ErrNoPods is the error for a workload without pods.
var ErrNoPods = errors.New("has no pods")

// ListPods returns the pods of a namespace, or of all.
func ListPods(dirs store.Dirs, namespace string, all bool) ([]store.Pod, error) {
	pods, err := dirs.Pods()
	if err != nil {
		return nil, err
	}
	return podview.Complete(pods, namespace, all), nil
}

// PodInfo is one pod with its current status.
type PodInfo struct {
	Manifest *corev1.Pod
	Status   *pod.Status
}

// LoadPod reads a pod for output.
func LoadPod(p store.Pod) (PodInfo, error) {
	text, err := p.Manifest()
	if err != nil {
		return PodInfo{}, err
	}
	k := PodInfo{}
	if k.Manifest, err = manifest.Unmarshal(text); err != nil {
		return PodInfo{}, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	setNodeName(k.Manifest)
	k.Status, err = podview.StatusOf(p)
	return k, err
}

// UniquePods removes duplicates.
func UniquePods(pods []store.Pod) []store.Pod {
	var out []store.Pod
	listed := map[store.Pod]bool{}
	for _, p := range pods {
		if !listed[p] {
			listed[p] = true
			out = append(out, p)
		}
	}
	return out
}

// PodNames replaces workloads among words by the names of their pods, the newest first; with single, by the
// newest running pod.
func PodNames(env *cmdutil.Env, dirs store.Dirs, namespace string, words []string, single bool) ([]string, error) {
	found, rest, err := SplitWorkloads(dirs, namespace, words)
	if err != nil {
		return nil, err
	}
	for _, w := range found {
		v, err := LoadWorkload(dirs, w)
		if err != nil {
			return nil, err
		}
		pods := v.Pods
		for _, j := range v.Jobs {
			pods = append(pods, j.Pods...)
		}
		if len(pods) == 0 {
			return nil, report.New(report.Failure, "podrun get "+v.Name()+" shows why", "%s %w", v.Name(), ErrNoPods)
		}
		slices.SortFunc(pods, func(a, b workload.Pod) int {
			if a.Alive != b.Alive {
				return cmp.Compare(cmdutil.BoolToInt(b.Alive), cmdutil.BoolToInt(a.Alive))
			}
			return b.Created.Compare(a.Created)
		})
		if single {
			if len(pods) > 1 {
				fmt.Fprintf(env.ErrOut, "podrun: %s has %d pods, using pod/%s\n", v.Name(), len(pods), pods[0].Name)
			}
			pods = pods[:1]
		}
		for i := range pods {
			rest = append(rest, pods[i].Name)
		}
	}
	return rest, nil
}

// FindPod returns the pod that a word names, by its own name or by a workload, which stands for its
// newest running pod.
func FindPod(env *cmdutil.Env, dirs store.Dirs, namespace, word string) (store.Pod, error) {
	words, err := PodNames(env, dirs, namespace, []string{word}, true)
	if err != nil {
		return store.Pod{}, err
	}
	return ExistingPod(dirs, namespace, words[0])
}

// FindPodAndPlan returns the pod that a word names (FindPod), with its Plan.
func FindPodAndPlan(env *cmdutil.Env, namespace, word string) (store.Pod, *pod.Plan, error) {
	dirs, err := env.Dirs()
	if err != nil {
		return store.Pod{}, nil, err
	}
	p, err := FindPod(env, dirs, namespace, word)
	if err != nil {
		return p, nil, err
	}
	plan, err := p.Plan()
	return p, plan, err
}

// SplitWorkloads separates words that name workloads, such as deployment/web, from the others.
func SplitWorkloads(dirs store.Dirs, namespace string, words []string) (found []store.Workload, rest []string, err error) {
	var errs []error
	for _, word := range words {
		kind, names, ok := kindnames.ParseObjects([]string{word})
		if !ok || !kindnames.IsWorkload(kind) || !strings.Contains(word, "/") {
			rest = append(rest, word)
			continue
		}
		v, err := FindWorkload(dirs, kind, namespace, names[0])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, v.Workload)
	}
	return found, rest, errors.Join(errs...)
}

// HasReplacement reports whether a replacement of a pod is recorded.
func HasReplacement(dirs store.Dirs, p store.Pod) bool {
	r, err := dirs.Replacement(p)
	return r != nil || err != nil
}
