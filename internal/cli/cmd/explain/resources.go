package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
)

// NewResourcesCommand returns the command api-resources.
func NewResourcesCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "api-resources",
		Usage: "list the kinds of objects",
		Description: `Lists the kinds of objects that podrun stores, in kubectl's columns, with the
short names that commands take.

Examples:
  podrun api-resources
  podrun api-resources -o name --namespaced=false
  podrun api-resources --api-group=apps
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: wide or name"},
			&cli.BoolFlag{Name: "namespaced", Value: true, Usage: "only the kinds whose objects are in namespaces; =false: only the others"},
			&cli.StringFlag{Name: "api-group", Usage: "only the kinds of this `GROUP`; \"\" is the core group"},
			&cli.BoolFlag{Name: "no-headers", Usage: "omit the table headers"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &resourcesOptions{env: env} }),
	}
}

// resourcesOptions are the command line of api-resources.
type resourcesOptions struct {
	env       *cmdutil.Env
	words     []string
	format    string
	scoped    bool // namespaced counts
	group     *string
	noHeaders bool

	namespaced bool
}

// Complete reads the command line.
func (o *resourcesOptions) Complete(c *cli.Context) error {
	o.words, o.format, o.noHeaders = c.Args().Slice(), c.String("output"), c.Bool("no-headers")
	o.scoped, o.namespaced = c.IsSet("namespaced"), c.Bool("namespaced")
	if c.IsSet("api-group") {
		o.group = new(c.String("api-group"))
	}
	return nil
}

// Validate checks the options.
func (o *resourcesOptions) Validate() error {
	switch {
	case len(o.words) > 0:
		return cmdutil.UsageErrorf("api-resources", "unexpected arguments: [%s]", strings.Join(o.words, " "))
	case !slices.Contains([]string{"", "wide", "name"}, o.format):
		return cmdutil.UsageErrorf("api-resources", "--output %s is not available: use wide or name", o.format)
	}
	return nil
}

// apiResource is one kind.
type apiResource struct {
	name, group, kind string
	short             []string
	namespaced, all   bool
}

// apiResources returns the kinds by group and name.
func apiResources() []apiResource {
	all := kindnames.Lookup("all")
	list := []apiResource{{name: "pods", kind: "Pod", short: []string{"po"}, namespaced: true, all: true}}
	for _, k := range kindnames.All() {
		singular, group, _ := strings.Cut(k.Words[0], ".")
		r := apiResource{name: kindnames.Plural(k.Kind), group: group, kind: string(k.Kind), namespaced: !k.Kind.ClusterScoped(), all: slices.Contains(all, k.Kind)}
		for _, word := range k.Words {
			if !strings.Contains(word, ".") && word != singular && word != r.name {
				r.short = append(r.short, word)
			}
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b apiResource) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.name, b.name))
	})
	return list
}

// Run prints the kinds.
func (o *resourcesOptions) Run(context.Context) error {
	rows := [][]string{{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}}
	if o.format == "wide" {
		rows[0] = append(rows[0], "VERBS", "CATEGORIES")
	}
	if o.noHeaders {
		rows = nil
	}
	for _, r := range apiResources() {
		switch {
		case o.scoped && r.namespaced != o.namespaced, o.group != nil && *o.group != r.group:
			continue
		case o.format == "name":
			if _, err := fmt.Fprintln(o.env.Out, strings.TrimSuffix(r.name+"."+r.group, ".")); err != nil {
				return err
			}
			continue
		}
		row := []string{r.name, strings.Join(r.short, ","), strings.TrimPrefix(r.group+"/v1", "/"), fmt.Sprint(r.namespaced), r.kind}
		if o.format == "wide" {
			row = append(row, r.verbs(), map[bool]string{true: "all"}[r.all])
		}
		rows = append(rows, row)
	}
	if o.format == "name" {
		return nil
	}
	w := tabwriter.NewWriter(o.env.Out, 6, 4, 3, ' ', 0) // as kubectl's, which leaves empty cells empty
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// verbs returns what commands do with objects of the kind, in the API's words.
func (r apiResource) verbs() string {
	verbs := "create,delete,get,list,patch,update"
	if r.kind == "Pod" { // get -w watches only pods
		verbs += ",watch"
	}
	return verbs
}
