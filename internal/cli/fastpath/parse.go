package main

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/crilog"
)

// defaultNamespace returns the namespace of commands that set none, as the CLI determines it. If it is not a
// valid name, the command's parser returns not ok.
func defaultNamespace() string {
	return cmp.Or(os.Getenv(podclient.NamespaceEnv), podclient.DefaultNamespace)
}

// execOptions are the command line of exec.
type execOptions struct {
	namespace, pod, container string
	stdin                     bool
	command                   []string
}

// parseExec parses `POD [-c CONTAINER] [-i] [-n NAMESPACE] -- COMMAND…`, with the options in any order.
// ok is false for any other word or form.
func parseExec(words []string) (o execOptions, ok bool) {
	end := slices.Index(words, "--")
	if end < 0 {
		return o, false
	}
	o.namespace, o.command = defaultNamespace(), words[end+1:]
	names, ok := options(words[:end], map[string]any{
		"-i --stdin": &o.stdin, "-c --container": &o.container, "-n --namespace": &o.namespace,
	})
	if !ok || len(names) != 1 || len(o.command) == 0 {
		return o, false
	}
	o.pod = names[0]
	return o, label(o.namespace) && plain(o.pod)
}

// logsOptions are the command line of logs.
type logsOptions struct {
	namespace, pod, container string
	tail                      int
	since                     time.Duration
	timestamps, previous      bool
}

// parseLogs parses `POD [-c CONTAINER] [-n NAMESPACE] [--tail LINES] [--since DURATION] [-t] [-p]`.
func parseLogs(words []string) (o logsOptions, ok bool) {
	o.namespace, o.tail = defaultNamespace(), -1
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
		// The CLI parses a number with a leading zero as octal.
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

func (o *logsOptions) selection() crilog.Selection {
	s := crilog.Selection{Tail: o.tail}
	if o.since > 0 {
		s.Since = time.Now().Add(-o.since)
	}
	return s
}

// parseEnding parses `POD [-n NAMESPACE]`, the command line of down and stop.
func parseEnding(words []string) (namespace, name string, ok bool) {
	namespace = defaultNamespace()
	names, ok := options(words, map[string]any{"-n --namespace": &namespace})
	if !ok || len(names) != 1 {
		return "", "", false
	}
	return namespace, names[0], label(namespace) && plain(names[0])
}

// listOptions are the command line of ps and get pods.
type listOptions struct {
	namespace      string
	all, noHeaders bool
}

// parseList parses `[-A] [-n NAMESPACE] [--no-headers]`, preceded for get by `pods`.
func parseList(command string, words []string) (o listOptions, ok bool) {
	o.namespace = defaultNamespace()
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

// options parses words. known maps the spellings of options to their values: a *bool for a flag, a
// *string for an option with an argument. All other words are names. ok is false for an option that is
// unknown or repeated, or whose argument is missing, empty or could be an option itself.
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

// find returns the value of the option that a word spells, or nil.
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

// plain reports whether a word can only be the name of a pod, not KIND/NAME.
func plain(word string) bool {
	return word != "" && !strings.HasPrefix(word, ".") && len(word) <= 253 &&
		!strings.ContainsFunc(word, func(r rune) bool {
			return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '.')
		})
}
