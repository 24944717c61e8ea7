package system

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// CompleteCommand is the hidden command by which shells request completions.
const CompleteCommand = "__complete"

// completeFiles makes the shell offer files.
const completeFiles = ":files"

// Completer finds completions of words.
type Completer struct {
	*cmdutil.Env
	Tree *cli.App
}

// candidate is a completion and its description.
type candidate struct{ word, about string }

// Complete prints the completions of the last word, each with its description on one line, or completeFiles.
// It prints no errors, because the shell is showing its prompt.
func (f Completer) Complete(words []string) {
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	for _, c := range f.choices(words[:len(words)-1], last) {
		if strings.HasPrefix(c.word, last) || c.word == completeFiles {
			fmt.Fprintf(f.Out, "%s\t%s\n", c.word, c.about)
		}
	}
}

// choices returns the candidates after words; last is the beginning of the word to complete.
func (f Completer) choices(words []string, last string) []candidate {
	path, cmd, rest := cmdline.Find(f.Tree, words)
	if slices.Contains(rest, "--") {
		return nil // the arguments of another program
	}
	if n := len(rest); n > 0 && strings.HasPrefix(rest[n-1], "-") {
		parts := cmdline.ExpandCluster(cmd, rest[n-1])
		if flag := parts[len(parts)-1]; cmdline.TakesValue(cmd, flag) {
			return f.values(cmd, strings.TrimLeft(flag, "-"), rest[:n-1])
		}
	}
	if strings.HasPrefix(last, "-") {
		return flagChoices(cmd)
	}
	if len(cmd.Subcommands) > 0 {
		if _, words, _, _ := cmdline.Split(cmd, rest); len(words) > 0 {
			return nil
		}
		return commandChoices(cmd)
	}
	return f.operands(strings.Join(path, " "), cmd, rest, last)
}

func commandChoices(cmd *cli.Command) (out []candidate) {
	for _, c := range cmd.Subcommands {
		out = append(out, candidate{c.Name, c.Usage})
	}
	return out
}

func flagChoices(cmd *cli.Command) (out []candidate) {
	for _, flag := range cmd.Flags {
		usage := ""
		if doc, ok := flag.(cli.DocGenerationFlag); ok {
			usage = strings.ReplaceAll(doc.GetUsage(), "`", "")
		}
		for _, name := range flag.Names() {
			if len(name) > 1 {
				out = append(out, candidate{"--" + name, usage})
			}
		}
	}
	return append(out, candidate{"--help", "show this help"})
}

// values returns the possible values of an option.
func (f Completer) values(cmd *cli.Command, flag string, before []string) []candidate {
	for _, known := range cmd.Flags {
		if names := known.Names(); slices.Contains(names, flag) {
			flag = names[0]
		}
	}
	fixed := map[string][]string{
		"output": {"wide", "json", "yaml", "name", "jsonpath=", "custom-columns="}, "types": {"Normal", "Warning"},
		"network": pod.NetworkModes, "pull": {"always", "missing", "never", "newer"},
	}
	if cmd.Name == "run" {
		fixed["output"], fixed["network"], fixed["gpus"] = []string{"yaml", "json"}, []string{"host", "none", "default"}, []string{"all"}
		fixed["pull"], fixed["restart"] = []string{"always", "missing", "never"}, []string{"no", "on-failure", "always", "unless-stopped"}
	}
	switch {
	case fixed[flag] != nil:
		return plain(fixed[flag])
	case flag == "namespace":
		return f.namespaces()
	case flag == "container":
		return f.containers(cmd, before)
	case slices.Contains([]string{"filename", "output", "from-file", "authfile", "env-file", "custom", "volume", "device"}, flag):
		return []candidate{{word: completeFiles}}
	}
	return nil
}

func plain(words []string) (out []candidate) {
	for _, w := range words {
		out = append(out, candidate{word: w})
	}
	return out
}

// operands returns the possible arguments of a command that are not options.
func (f Completer) operands(path string, cmd *cli.Command, before []string, last string) []candidate {
	_, words, _, _ := cmdline.Split(cmd, before)
	namespace := cmdline.FlagValue(cmd, before, "namespace")
	switch {
	case slices.Contains([]string{"up", "apply", "validate", "diff", "convert", "image load", "image import", "systemd install"}, path):
		return []candidate{{word: completeFiles}}
	case path == "get" || path == "delete" || path == "describe":
		return f.kinds(words, last, namespace, path != "delete")
	case strings.HasPrefix(path, "rollout ") || slices.Contains([]string{"scale", "set image", "label", "annotate", "explain"}, path):
		return f.kinds(words, last, namespace, false)
	case path == "cp":
		return append(f.pods(namespace, ":"), candidate{word: completeFiles})
	case slices.Contains([]string{"down", "stop", "start", "restart", "kill", "pause", "unpause", "events", "top", "wait", "update", "ps"}, path):
		return f.pods(namespace, "")
	case slices.Contains([]string{"logs", "exec", "attach", "debug", "port", "port-forward", "condition set"}, path) && len(words) == 0:
		return f.pods(namespace, "")
	case slices.Contains([]string{"image rm", "rmi", "image save", "image push", "image inspect", "image history", "image tag", "image verify"}, path), path == "run" && len(words) == 0:
		return f.images()
	case strings.HasPrefix(path, "volume "):
		return f.objects(pod.KindClaim, namespace, "")
	case path == "completion":
		return plain([]string{"bash", "zsh", "fish"})
	case path == "help":
		_, cmd, _ := cmdline.Find(f.Tree, before)
		return commandChoices(cmd)
	}
	return nil
}

// kinds returns kinds of objects, and the names of objects of a given kind.
func (f Completer) kinds(words []string, last, namespace string, pods bool) (out []candidate) {
	of := ""
	if kind, _, slashed := strings.Cut(last, "/"); slashed {
		words, of = []string{kind}, kind+"/"
	}
	if len(words) > 0 {
		for _, kind := range kindnames.Lookup(words[0]) {
			if kind == "" {
				return ofKind(f.pods(namespace, ""), of)
			}
			return f.objects(kind, namespace, of)
		}
		return f.pods(namespace, "")
	}
	if pods {
		out = append(out, candidate{"pods", ""}, candidate{"all", "pods, services and workloads"})
		out = append(out, f.pods(namespace, "")...)
	}
	for _, k := range kindnames.All() {
		out = append(out, candidate{strings.TrimSuffix(strings.TrimSuffix(k.Words[0], ".apps"), ".batch"), ""})
	}
	return out
}

// ofKind prefixes names with a kind.
func ofKind(list []candidate, of string) []candidate {
	for i := range list {
		list[i].word = of + list[i].word
	}
	return list
}

func (f Completer) pods(namespace, after string) (out []candidate) {
	dirs, err := f.Dirs()
	if err != nil {
		return nil
	}
	pods, err := resource.ListPods(dirs, cmp.Or(namespace, f.Namespace), false)
	if err != nil {
		return nil
	}
	for _, p := range pods {
		out = append(out, candidate{p.Name + after, "pod"})
	}
	return out
}

func (f Completer) objects(kind pod.ObjectKind, namespace, of string) (out []candidate) {
	dirs, err := f.Dirs()
	if err != nil {
		return nil
	}
	namespace = cmp.Or(namespace, f.Namespace)
	if kind.ClusterScoped() {
		namespace = ""
	}
	list, err := dirs.Objects(kind, namespace)
	if kind == pod.KindNamespace {
		list, err = resource.ListNamespaces(dirs)
	}
	if err != nil {
		return nil
	}
	for _, o := range list {
		out = append(out, candidate{of + o.Name, strings.ToLower(string(kind))})
	}
	return out
}

func (f Completer) namespaces() []candidate {
	dirs, err := f.Dirs()
	if err != nil {
		return nil
	}
	var names []string
	all, _ := resource.ListNamespaces(dirs) // offer what can be read
	for _, o := range all {
		names = append(names, o.Name)
	}
	return plain(names)
}

// containers returns the containers of the pod that is named before.
func (f Completer) containers(cmd *cli.Command, before []string) (out []candidate) {
	dirs, err := f.Dirs()
	_, words, _, _ := cmdline.Split(cmd, before)
	if err != nil || len(words) == 0 {
		return nil
	}
	var p store.Pod
	if p, err = resource.ExistingPod(dirs, cmp.Or(cmdline.FlagValue(cmd, before, "namespace"), f.Namespace), words[0]); err != nil {
		return nil
	}
	plan, err := p.Plan()
	if err != nil {
		return nil
	}
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			out = append(out, candidate{list[i].Name, list[i].Image})
		}
	}
	return out
}

// images returns the names of images.
func (f Completer) images() (out []candidate) {
	s, err := f.ImageStore()
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
