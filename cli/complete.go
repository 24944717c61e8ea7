package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/pod"
)

// completeWord is the command that shells ask what a word could become.
const completeWord = "__complete"

// theFiles asks the shell to offer files.
const theFiles = ":files"

// completer finds out what words can become.
type completer struct {
	*front
	tree *cli.App
}

// choice is what a word can become, and what that is.
type choice struct{ word, about string }

// complete prints what the last of the words can become: a word and what it is on each
// line, or theFiles. Nothing that goes wrong is said: a shell waits with its prompt.
func (f completer) complete(words []string) {
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	for _, c := range f.choices(words[:len(words)-1], last) {
		if strings.HasPrefix(c.word, last) || c.word == theFiles {
			fmt.Fprintf(f.out, "%s\t%s\n", c.word, c.about)
		}
	}
}

// choices are what may follow words; last is what there is of it.
func (f completer) choices(words []string, last string) []choice {
	path, cmd, rest := find(f.tree, words)
	if slices.Contains(rest, "--") {
		return nil // the words of another program
	}
	if n := len(rest); n > 0 && strings.HasPrefix(rest[n-1], "-") {
		parts := cluster(cmd, rest[n-1])
		if flag := parts[len(parts)-1]; takesValue(cmd, flag) {
			return f.values(cmd, strings.TrimLeft(flag, "-"), rest[:n-1])
		}
	}
	if strings.HasPrefix(last, "-") {
		return flagChoices(cmd)
	}
	if len(cmd.Subcommands) > 0 {
		if _, words, _, _ := split(cmd, rest); len(words) > 0 {
			return nil
		}
		return commandChoices(cmd)
	}
	return f.operands(strings.Join(path, " "), cmd, rest, last)
}

func commandChoices(cmd *cli.Command) (out []choice) {
	for _, c := range cmd.Subcommands {
		out = append(out, choice{c.Name, c.Usage})
	}
	return out
}

func flagChoices(cmd *cli.Command) (out []choice) {
	for _, flag := range cmd.Flags {
		usage := ""
		if doc, ok := flag.(cli.DocGenerationFlag); ok {
			usage = strings.ReplaceAll(doc.GetUsage(), "`", "")
		}
		for _, name := range flag.Names() {
			if len(name) > 1 {
				out = append(out, choice{"--" + name, usage})
			}
		}
	}
	return append(out, choice{"--help", "show this help"})
}

// values are those that an option can have.
func (f completer) values(cmd *cli.Command, flag string, before []string) []choice {
	for _, known := range cmd.Flags {
		if names := known.Names(); slices.Contains(names, flag) {
			flag = names[0]
		}
	}
	fixed := map[string][]string{
		"output": {"wide", "json", "yaml", "name", "jsonpath=", "custom-columns="}, "types": {"Normal", "Warning"},
		"network": pod.NetworkModes, "pull": {"always", "missing", "never", "newer"},
	}
	switch {
	case fixed[flag] != nil:
		return plain(fixed[flag])
	case flag == "namespace":
		return f.namespaces()
	case flag == "container":
		return f.containers(cmd, before)
	case slices.Contains([]string{"filename", "output", "from-file", "authfile", "env-file", "custom"}, flag):
		return []choice{{word: theFiles}}
	}
	return nil
}

func plain(words []string) (out []choice) {
	for _, w := range words {
		out = append(out, choice{word: w})
	}
	return out
}

// operands are what a command's other words can be.
func (f completer) operands(path string, cmd *cli.Command, before []string, last string) []choice {
	_, words, _, _ := split(cmd, before)
	namespace := given(cmd, before, "namespace")
	switch {
	case slices.Contains([]string{"up", "apply", "validate", "diff", "image load", "image import", "systemd install"}, path):
		return []choice{{word: theFiles}}
	case path == "get" || path == "delete" || path == "describe":
		return f.kinds(words, last, namespace, path != "delete")
	case path == "cp":
		return append(f.pods(namespace, ":"), choice{word: theFiles})
	case slices.Contains([]string{"down", "stop", "start", "restart", "kill", "pause", "unpause", "events", "top", "wait", "update", "ps"}, path):
		return f.pods(namespace, "")
	case slices.Contains([]string{"logs", "exec", "attach", "debug", "port", "port-forward", "condition set"}, path) && len(words) == 0:
		return f.pods(namespace, "")
	case slices.Contains([]string{"image rm", "rmi", "image save", "image inspect", "image history", "image tag", "image verify"}, path):
		return f.images()
	case strings.HasPrefix(path, "volume "):
		return f.objects(pod.KindClaim, namespace, "")
	case path == "completion":
		return plain([]string{"bash", "zsh", "fish"})
	case path == "help":
		_, cmd, _ := find(f.tree, before)
		return commandChoices(cmd)
	}
	return nil
}
