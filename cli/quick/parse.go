package main

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/internal/crilog"
)

// namespace is that of commands which name none, as the whole front finds it. One that is no
// name makes the command's parser return not ok.
func namespace() string { return cmp.Or(os.Getenv(podclient.NamespaceEnv), podclient.DefaultNamespace) }

// order is a command to run in a container.
type order struct {
	namespace, pod, container string
	stdin                     bool
	command                   []string
}

// parseExec reads `POD [-c CONTAINER] [-i] [-n NAMESPACE] -- COMMAND…`, the options in any
// order. Any other word, and any other way to write these, makes it not ok.
func parseExec(words []string) (o order, ok bool) {
	end := slices.Index(words, "--")
	if end < 0 {
		return o, false
	}
	o.namespace, o.command = namespace(), words[end+1:]
	names, ok := options(words[:end], map[string]any{
		"-i --stdin": &o.stdin, "-c --container": &o.container, "-n --namespace": &o.namespace,
	})
	if !ok || len(names) != 1 || len(o.command) == 0 {
		return o, false
	}
	o.pod = names[0]
	return o, label(o.namespace) && plain(o.pod)
}

// logOrder is what to show of a container's output.
type logOrder struct {
	namespace, pod, container string
	tail                      int
	since                     time.Duration
	timestamps, previous      bool
}

// parseLogs reads `POD [-c CONTAINER] [-n NAMESPACE] [--tail LINES] [--since DURATION]
// [-t] [-p]`.
func parseLogs(words []string) (o logOrder, ok bool) {
	o.namespace, o.tail = namespace(), -1
	var tail, since string
	names, ok := options(words, map[string]any{
		"-c --container": &o.container, "-n --namespace": &o.namespace, "--tail": &tail, "--since": &since,
		"-t --timestamps": &o.timestamps, "-p --previous": &o.previous,
	})
	if !ok || len(names) != 1 || !label(o.namespace) || !plain(names[0]) {
		return o, false
	}
	o.pod = names[0]
	if tail != "" {
		// A zero before a number makes it octal to the whole front.
		if n, err := strconv.Atoi(tail); err == nil && strconv.Itoa(n) == tail {
			o.tail = n
		} else {
			return o, false
		}
	}
	if since != "" {
		var err error
		if o.since, err = time.ParseDuration(since); err != nil || o.since <= 0 {
			return o, false
		}
	}
	return o, true
}

func (o *logOrder) selection() crilog.Selection {
	s := crilog.Selection{Tail: o.tail}
	if o.since > 0 {
		s.Since = time.Now().Add(-o.since)
	}
	return s
}

// parseEnding reads `POD [-n NAMESPACE]`.
func parseEnding(words []string) (home, name string, ok bool) {
	home = namespace()
	names, ok := options(words, map[string]any{"-n --namespace": &home})
	if !ok || len(names) != 1 {
		return "", "", false
	}
	return home, names[0], label(home) && plain(names[0])
}

// listOrder is which pods to list.
type listOrder struct {
	namespace      string
	all, noHeaders bool
}

// parseList reads `[-A] [-n NAMESPACE] [--no-headers]`, for get with `pods`.
func parseList(command string, words []string) (o listOrder, ok bool) {
	o.namespace = namespace()
	names, ok := options(words, map[string]any{
		"-A --all-namespaces": &o.all, "-n --namespace": &o.namespace, "--no-headers": &o.noHeaders,
	})
	if command == "get" {
		ok = ok && len(names) == 1 && slices.Contains([]string{"pods", "pod", "po"}, names[0])
	} else {
		ok = ok && len(names) == 0
	}
	return o, ok && label(o.namespace)
}

// options reads words of which known are the options, by their ways to be written: a *bool
// for one that stands alone, a *string for one that a word follows. The other words are names.
// An option that is not known, that is given twice, or whose word is missing, is empty or could
// be an option itself makes it not ok.
func options(words []string, known map[string]any) (names []string, ok bool) {
	given := map[any]bool{}
	for ; len(words) > 0; words = words[1:] {
		if !strings.HasPrefix(words[0], "-") {
			names = append(names, words[0])
			continue
		}
		value := find(known, words[0])
		if value == nil || given[value] {
			return nil, false
		}
		given[value] = true
		switch value := value.(type) {
		case *bool:
			*value = true
		case *string:
			if len(words) < 2 || words[1] == "" || strings.HasPrefix(words[1], "-") {
				return nil, false
			}
			*value = words[1]
			words = words[1:]
		}
	}
	return names, true
}

// find is the option that a word writes, or nil.
func find(known map[string]any, word string) any {
	for ways, value := range known {
		if slices.Contains(strings.Fields(ways), word) {
			return value
		}
	}
	return nil
}

// label reports whether a word can be the name of a namespace.
func label(word string) bool {
	return plain(word) && len(word) <= 63 && !strings.Contains(word, ".") && strings.Trim(word, "-") == word
}

// plain says whether a word can be the name of a pod, and nothing else: no KIND/NAME.
func plain(word string) bool {
	return word != "" && !strings.HasPrefix(word, ".") && len(word) <= 253 &&
		!strings.ContainsFunc(word, func(r rune) bool {
			return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '.')
		})
}
