package resource

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/store"
)

// Targets are the pods and objects that a command changes: named on its command line, described by files, or
// selected among all of a kind.
type Targets struct {
	env          *cmdutil.Env
	command      string
	namespace    string
	words, files []string
	chosen       *Selection

	Empty error // what Find returns if nothing is selected; nil: it reports that
}

// TargetFlags returns the flags of a command with Targets.
func TargetFlags(more ...cli.Flag) []cli.Flag {
	flags := append([]cli.Flag{
		cmdutil.NamespaceFlag(),
		&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "the objects of this `FILE` (- is standard input)"},
	}, SelectionFlags("the objects of the kind")...)
	return append(flags, more...)
}

// TargetsOf returns the Targets of words and of the flags. It is an error if there are none.
func TargetsOf(env *cmdutil.Env, c *cli.Context, words []string) (*Targets, error) {
	t := &Targets{env: env, command: commandPath(c), namespace: c.String("namespace"), words: words, files: c.StringSlice("filename")}
	var err error
	if t.chosen, err = SelectionOf(c, len(t.files) > 0); err != nil {
		return nil, err
	}
	switch {
	case len(words) > 0 && len(t.files) > 0:
		return nil, cmdutil.UsageErrorf(t.command, "%s requires either names or -f, not both", t.command)
	case len(words)+len(t.files) == 0:
		return nil, cmdutil.UsageErrorf(t.command, "%s requires a kind and a name, such as deployment/web, or -f and a file", t.command)
	}
	return t, nil
}

// commandPath returns the words of the command, such as "rollout status".
func commandPath(c *cli.Context) string { return strings.TrimPrefix(c.Command.HelpName, "podrun ") }

// Find returns references to the targets; the kind of a pod is "". Objects that are named need not exist. If
// nothing is selected, it reports that and returns none.
func (t *Targets) Find(dirs store.Dirs) ([]kindnames.ObjectRef, error) {
	queries, err := t.queries()
	if err != nil {
		return nil, err
	}
	var refs []kindnames.ObjectRef
	var errs []error
	for _, q := range queries {
		switch {
		case t.chosen != nil && len(q.Names) > 0:
			return nil, cmdutil.UsageErrorf(t.command, "--selector and --all cannot be combined with names or files")
		case t.chosen != nil:
			found, err := t.selected(dirs, q)
			refs, errs = append(refs, found...), append(errs, err)
			continue
		case len(q.Names) == 0:
			return nil, cmdutil.UsageErrorf(t.command, "resource(s) were provided, but no name was specified")
		}
		namespace := t.namespace
		if q.Namespace != "" {
			namespace = q.Namespace
		}
		for _, name := range q.Names {
			refs = append(refs, kindnames.ObjectRef{Kind: q.Kind, Namespace: namespace, Name: name})
		}
	}
	if t.chosen != nil && len(refs) == 0 && errors.Join(errs...) == nil {
		if t.Empty != nil {
			return nil, t.Empty
		}
		t.chosen.ReportEmpty(t.env)
	}
	return refs, errors.Join(errs...)
}

func (t *Targets) queries() ([]kindnames.Query, error) {
	if len(t.files) > 0 {
		return QueriesInFiles(t.env, t.files)
	}
	return parseQueries(t.words)
}

// selected returns the selected pods or objects of one kind.
func (t *Targets) selected(dirs store.Dirs, q kindnames.Query) ([]kindnames.ObjectRef, error) {
	if q.Kind != "" {
		return t.chosen.Objects(dirs, q.Kind)
	}
	pods, _, err := t.chosen.Pods(dirs)
	var refs []kindnames.ObjectRef
	for _, p := range pods {
		refs = append(refs, kindnames.ObjectRef{Namespace: p.Namespace, Name: p.Name})
	}
	return refs, err
}

// SplitChanges separates words that name targets from the changes after them, such as KEY=VALUE and KEY-.
func SplitChanges(command string, words []string) (targets, changes []string, err error) {
	for _, word := range words {
		change := strings.Index(word, "=") > 0 || len(word) > 1 && strings.HasSuffix(word, "-")
		switch {
		case change:
			changes = append(changes, word)
		case len(changes) > 0:
			return nil, nil, cmdutil.UsageErrorf(command, "all resources must be specified before changes: %s", word)
		default:
			targets = append(targets, word)
		}
	}
	return targets, changes, nil
}
