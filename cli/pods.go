package cli

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

func namespaceFlag() cli.Flag {
	return &cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: remote.DefaultNamespace, Usage: "the pod's `NAMESPACE` ($PODRUN_NAMESPACE or \"default\" if not given)"}
}

// ofManifests is the namespace flag of commands that read manifests.
func ofManifests() cli.Flag {
	return &cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: remote.DefaultNamespace, Usage: "the `NAMESPACE` of objects that name none ($PODRUN_NAMESPACE or \"default\" if not given); those of another are refused"}
}

// useNamespace sets the namespace of what names none: the value of -n among the words of
// the command, else the one of the environment.
func (f *front) useNamespace(cmd *cli.Command, words []string) error {
	f.onlyNamespace = given(cmd, words, "namespace")
	if f.onlyNamespace != "" {
		f.namespace = f.onlyNamespace
	} else if findFlag(cmd, "namespace") != nil && len(validation.IsDNS1123Label(f.namespace)) > 0 {
		return report.New(report.Usage, "set "+remote.NamespaceEnv+" to a name such as web, or unset it", "%s=%q is not the name of a namespace", remote.NamespaceEnv, f.namespace)
	}
	return nil
}

// place is where the pod that the user named would be. Words that cannot be names
// never reach the file system: there is no such pod.
func place(dirs store.Dirs, namespace, word string) (store.Pod, error) {
	name := word
	for _, kind := range []string{"pod/", "pods/", "po/"} {
		if rest, ok := strings.CutPrefix(word, kind); ok {
			name = rest
			break
		}
	}
	if kind, _, known := objectWords([]string{name}); known && strings.Contains(name, "/") {
		return store.Pod{}, report.New(report.Failure, "podrun get "+kindWord(kind)+" shows those there are, podrun ps the pods", "%q does not name a pod", word)
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return store.Pod{}, notFound(namespace, name)
	}
	return dirs.Pod(namespace, name), nil
}

// existing is place for a pod that is there.
func existing(dirs store.Dirs, namespace, word string) (store.Pod, error) {
	p, err := place(dirs, namespace, word)
	if err == nil && !p.Exists() {
		err = noPod(dirs, p)
	}
	return p, err
}

// noPod is the error for a pod that is not there, of whose name something may be that
// makes pods.
func noPod(dirs store.Dirs, p store.Pod) error {
	for _, kind := range pod.Workloads() {
		if w, err := dirs.Workload(kind, p.Namespace, p.Name); err == nil {
			if _, err := w.Object(); err == nil {
				return report.New(report.Failure, "did you mean "+kindWord(kind)+"/"+p.Name+"?", "pod %q %w", p.Name, errNotFound)
			}
		}
	}
	return notFound(p.Namespace, p.Name)
}

func notFound(namespace, name string) error {
	kind, _, _ := strings.Cut(name, "/")
	if namespace == remote.DefaultNamespace {
		return report.New(report.Failure, cmp.Or(foreign(kind), "podrun ps lists the pods"), "pod %q %w", name, errNotFound)
	}
	return report.New(report.Failure, "podrun ps -A lists the pods of all namespaces", "pod %q %w in namespace %q", name, errNotFound, namespace)
}
