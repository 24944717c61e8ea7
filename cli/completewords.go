package cli

import (
	"cmp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// given is the value of an option among words.
func given(cmd *cli.Command, words []string, name string) string {
	flags, _, _, _ := split(cmd, words)
	value := ""
	for i, word := range flags {
		option, v, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
		known := findFlag(cmd, option)
		if known == nil || known.Names()[0] != name || !strings.HasPrefix(word, "-") {
			continue
		}
		if value = v; !has && i+1 < len(flags) {
			value = flags[i+1]
		}
	}
	return value
}

// kinds are kinds of objects, and things of the kind that is named.
func (f completer) kinds(words []string, last, namespace string, pods bool) (out []choice) {
	of := ""
	if kind, _, slashed := strings.Cut(last, "/"); slashed {
		words, of = []string{kind}, kind+"/"
	}
	if len(words) > 0 {
		for _, kind := range kindsNamed(words[0]) {
			if kind == "" {
				return ofKind(f.pods(namespace, ""), of)
			}
			return f.objects(kind, namespace, of)
		}
		return f.pods(namespace, "")
	}
	if pods {
		out = append(out, choice{"pods", ""}, choice{"all", "pods, services and what makes pods"})
		out = append(out, f.pods(namespace, "")...)
	}
	for _, k := range objectKinds() {
		out = append(out, choice{strings.TrimSuffix(strings.TrimSuffix(k.words[0], ".apps"), ".batch"), ""})
	}
	return out
}

// ofKind puts a kind before names.
func ofKind(list []choice, of string) []choice {
	for i := range list {
		list[i].word = of + list[i].word
	}
	return list
}

func (f completer) pods(namespace, after string) (out []choice) {
	dirs, err := f.dirs()
	if err != nil {
		return nil
	}
	places, err := listed(dirs, cmp.Or(namespace, f.namespace), false)
	if err != nil {
		return nil
	}
	for _, p := range places {
		out = append(out, choice{p.Name + after, "pod"})
	}
	return out
}

func (f completer) objects(kind pod.ObjectKind, namespace, of string) (out []choice) {
	dirs, err := f.dirs()
	if err != nil {
		return nil
	}
	list, err := dirs.Objects(kind, cmp.Or(namespace, f.namespace))
	if kind == pod.KindNamespace {
		list, err = namespaces(dirs)
	}
	if err != nil {
		return nil
	}
	for _, o := range list {
		out = append(out, choice{of + o.Name, strings.ToLower(string(kind))})
	}
	return out
}

func (f completer) namespaces() []choice {
	dirs, err := f.dirs()
	if err != nil {
		return nil
	}
	var names []string
	all, _ := namespaces(dirs) // what can be read is offered
	for _, o := range all {
		names = append(names, o.Name)
	}
	return plain(names)
}

// containers are those of the pod that is named before.
func (f completer) containers(cmd *cli.Command, before []string) (out []choice) {
	dirs, err := f.dirs()
	_, words, _, _ := split(cmd, before)
	if err != nil || len(words) == 0 {
		return nil
	}
	var p store.Pod
	if p, err = existing(dirs, cmp.Or(given(cmd, before, "namespace"), f.namespace), words[0]); err != nil {
		return nil
	}
	plan, err := p.Plan()
	if err != nil {
		return nil
	}
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			out = append(out, choice{list[i].Name, list[i].Image})
		}
	}
	return out
}

// images are by their names.
func (f completer) images() (out []choice) {
	s, err := f.store()
	if err != nil {
		return nil
	}
	list, err := s.List()
	if err != nil {
		return nil
	}
	for _, i := range list {
		out = append(out, plain(i.Names)...)
	}
	return out
}
