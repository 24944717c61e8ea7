package main

import (
	"strings"
)

// order is a command to run in a container.
type order struct {
	namespace, pod, container string
	stdin                     bool
	command                   []string
}

// parse reads `exec POD [-c CONTAINER] [-i] [-n NAMESPACE] -- COMMAND…`, the options in any
// order. Any other word, and any other way to write these, makes it not ok.
func parse(words []string) (o order, ok bool) {
	o.namespace = "default"
	if len(words) == 0 || words[0] != "exec" {
		return o, false
	}
	for words = words[1:]; len(words) > 0; words = words[1:] {
		var value *string
		switch word := words[0]; word {
		case "--":
			o.command = words[1:]
			return o, len(o.command) > 0 && plain(o.namespace) && plain(o.pod)
		case "-i", "--stdin":
			o.stdin = true
			continue
		case "-c", "--container":
			value = &o.container
		case "-n", "--namespace":
			value = &o.namespace
		default:
			if o.pod != "" || strings.HasPrefix(word, "-") {
				return o, false
			}
			o.pod = word
			continue
		}
		if len(words) < 2 {
			return o, false
		}
		*value = words[1]
		words = words[1:]
	}
	return o, false
}

// plain says whether a word can be the name of a pod, and nothing else: no KIND/NAME.
func plain(word string) bool {
	return word != "" && !strings.HasPrefix(word, ".") && len(word) <= 253 &&
		!strings.ContainsFunc(word, func(r rune) bool {
			return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '.')
		})
}
