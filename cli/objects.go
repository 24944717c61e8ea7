package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// objectWords takes the words for objects that are kept apart: a kind and names, or
// KIND/NAME. ok is false if they are about something else.
func objectWords(words []string) (kind pod.ObjectKind, names []string, ok bool) {
	if len(words) == 0 {
		return "", nil, false
	}
	first, name, slashed := strings.Cut(words[0], "/")
	for _, o := range objectKinds() {
		if slices.Contains(o.words, strings.ToLower(first)) {
			kind, ok = o.kind, true
		}
	}
	if !slashed {
		return kind, words[1:], ok
	}
	names = []string{name}
	for _, word := range words[1:] {
		names = append(names, strings.TrimPrefix(word, first+"/"))
	}
	return kind, names, ok
}

// object is one that the user has named.
func object(dirs store.Dirs, kind pod.ObjectKind, namespace, name string) (*pod.Object, error) {
	if kind == pod.KindNamespace {
		namespace = ""
	}
	o, err := dirs.Object(kind, namespace, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrBadName) {
		hint := fmt.Sprintf("podrun get %s lists those of a namespace", kindWord(kind))
		if namespace == "" || namespace == remote.DefaultNamespace {
			return nil, report.New(report.Failure, hint, "%s %q not found", kindWord(kind), name)
		}
		return nil, report.New(report.Failure, hint, "%s %q not found in namespace %q", kindWord(kind), name, namespace)
	}
	return o, err
}
