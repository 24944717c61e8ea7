package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/report"
)

// QueriesInFiles returns queries for the objects of files. It warns of kinds that have no effect here.
func QueriesInFiles(env *cmdutil.Env, files []string) ([]kindnames.Query, error) {
	found, err := NamedInFiles(env, files)
	if err != nil {
		return nil, err
	}
	var all []kindnames.Query
	for i := range found {
		o := &found[i]
		if o.Value == nil {
			fmt.Fprintf(env.ErrOut, "podrun: warning: %s: podrun does not store %s objects\n", report.Escape(Location(o)), o.Kind)
			continue
		}
		a := kindnames.Query{Names: []string{o.Name()}, Namespace: o.Value.GetNamespace()}
		if o.Pod == nil {
			a.Kind, _, _ = kindnames.ParseObjects([]string{o.Kind})
		}
		if n := len(all) - 1; n >= 0 && all[n].Kind == a.Kind && all[n].Namespace == a.Namespace {
			all[n].Names = append(all[n].Names, a.Names...)
			continue
		}
		all = append(all, a)
	}
	return all, nil
}

// ParseQueries is parseQueries, except that a word for an unsupported kind is a pod if there is one of
// that name.
func ParseQueries(env *cmdutil.Env, namespace string, words []string) ([]kindnames.Query, error) {
	what, err := parseQueries(words)
	if err == nil || len(words) > 1 || kindnames.UnsupportedError(words[0]) == nil {
		return what, err
	}
	dirs, derr := env.Dirs()
	if derr != nil {
		return nil, derr
	}
	if _, perr := ExistingPod(dirs, namespace, words[0]); perr != nil {
		return nil, err
	}
	return []kindnames.Query{{Names: words}}, nil
}

// PodWords returns the words of a command that takes names of pods beside KIND/NAME: if one has a kind, the others name
// pods.
func PodWords(words []string) []string {
	if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "/") }) {
		return words
	}
	out := slices.Clone(words)
	for i, word := range out {
		out[i] = PodWord(word)
	}
	return out
}

// PodWord returns KIND/NAME for a word that names a pod.
func PodWord(word string) string {
	if strings.Contains(word, "/") {
		return word
	}
	return "pod/" + word
}

// ParseKinds is parseQueries for a command that requires kinds: a word that is none is an error.
func ParseKinds(words []string) ([]kindnames.Query, error) {
	if first, _, _ := strings.Cut(words[0], ","); !strings.Contains(words[0], "/") && kindnames.Lookup(first) == nil {
		return nil, cmp.Or(kindnames.UnsupportedError(first), kindnames.UnknownError(first))
	}
	return parseQueries(words)
}

// parseQueries parses the arguments of get: kinds ("pods", "cm,secrets", "all") and their names, names
// with one kind each (cm/a svc/b), or names of pods.
func parseQueries(words []string) ([]kindnames.Query, error) {
	var all []kindnames.Query
	if strings.Contains(words[0], "/") {
		for _, word := range words {
			kind, name, slashed := strings.Cut(word, "/")
			if !slashed {
				return nil, cmdutil.UsageErrorf("get", "use KIND/NAME for all arguments or for none: %q is not", word)
			}
			kinds := kindnames.Lookup(kind)
			if len(kinds) != 1 {
				return nil, cmp.Or(kindnames.UnsupportedError(kind), kindnames.UnknownError(kind))
			}
			k := kinds[0]
			if n := len(all) - 1; n >= 0 && all[n].Kind == k {
				all[n].Names = append(all[n].Names, name)
				continue
			}
			all = append(all, kindnames.Query{Kind: k, Names: []string{name}})
		}
		return all, nil
	}
	parts := strings.Split(words[0], ",")
	if kindnames.Lookup(parts[0]) == nil && len(parts) == 1 && kindnames.UnsupportedError(parts[0]) == nil {
		return []kindnames.Query{{Names: words}}, nil
	}
	for _, part := range parts {
		kinds := kindnames.Lookup(part)
		if kinds == nil {
			return nil, cmp.Or(kindnames.UnsupportedError(part), kindnames.UnknownError(part))
		}
		for _, k := range kinds {
			all = append(all, kindnames.Query{Kind: k, Names: words[1:]})
		}
	}
	if len(all) > 1 && len(words) > 1 {
		return nil, cmdutil.UsageErrorf("get", "names require a single kind: use KIND/NAME for objects of several kinds")
	}
	return all, nil
}
