package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/support"
	"github.com/podrun/podrun/pod"
)

func (f *front) validateCommand() *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check manifests and show what podrun makes of each field",
		ArgsUsage: "FILE... | -f FILE|DIRECTORY|URL | -",
		Description: `Checks manifests as up does, without starting anything. For every field it says
whether podrun does it (ok), reads it and has no use for it on one machine
(accepted), or does not do it yet (refused), and what the pod may use in all.

-o json prints an object with valid, objects (each with its fields) and errors
(each with file, document, line and field).

Examples:
  podrun validate web.yaml
  generate-pod | podrun validate -
  podrun validate -q web.yaml && echo fine
  podrun validate -o json web.yaml
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "check this `FILE` (- is standard input)"},
			ofManifests(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but what is wrong"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print `FORMAT`: json"},
			strictFlag(),
			policyFlag(),
		},
		Action: f.validate,
	}
}

func (f *front) validate(c *cli.Context) error {
	files := append(c.StringSlice("filename"), c.Args().Slice()...)
	format := c.String("output")
	switch {
	case len(files) == 0:
		return usageErrorf("validate", "validate takes the files of pods")
	case c.IsSet("output") && format != "json":
		return usageErrorf("validate", "unknown output format %q: only json is supported", format)
	}
	sources, readErr := f.readAll(files)
	docs, err := load(sources)
	dirs, dirsErr := f.dirs()
	if dirsErr != nil {
		return dirsErr
	}
	good := slices.Concat(docs.pods, docs.workloads, docs.stored)
	err = errors.Join(readErr, err, f.judgeIdle(docs.idle, c.Bool("strict")), f.judgePolicy(dirs, docs, c.String("policy")))
	switch {
	case format == "json":
		return errors.Join(err, f.printVerdict(good, docs.idle, err))
	case c.Bool("quiet"):
		return err
	}
	for i := range good {
		f.printFindings(&good[i], good[i].Findings)
		if good[i].Pod != nil {
			f.printEffective(&good[i])
		}
	}
	if err != nil && len(good) == 0 {
		f.printUnfit(sources)
	}
	return err
}

// printUnfit shows, field by field, what can be decoded though it cannot be run.
// What cannot even be decoded has been said.
func (f *front) printUnfit(sources []source) {
	for _, src := range sources {
		written, err := manifest.Decode(src.name, src.data)
		if err != nil {
			continue
		}
		for i := range written {
			f.printFindings(&written[i], written[i].SetFields())
		}
	}
}

// word is how a finding is called for people.
func word(s support.Level) string {
	if s == support.Done {
		return "ok"
	}
	return string(s)
}

func (f *front) printFindings(o *manifest.Object, findings []support.Finding) {
	fmt.Fprintf(f.out, "%s: %s %s\n", report.Escape(where(o)), strings.ToLower(o.Kind), report.Escape(o.Name()))
	for _, found := range findings {
		line := fmt.Sprintf("  %-8s  %s", word(found.Support), found.Path)
		if found.Note != "" {
			line += ": " + found.Note
		}
		fmt.Fprintln(f.out, report.Escape(line))
	}
}

// printEffective shows what the pod and its containers may use.
func (f *front) printEffective(o *manifest.Object) {
	e := o.Effective
	if e.Pod.IsZero() {
		fmt.Fprintf(f.out, "  no requests or limits (QoS %s)\n", e.QOSClass)
		return
	}
	fmt.Fprintf(f.out, "  effective resources, by the rule %q (QoS %s):\n", e.Rule, e.QOSClass)
	row := func(name string, r pod.Resources) {
		fmt.Fprintf(f.out, "    %s: cpu %s to %s, memory %s to %s\n", name,
			cpu(r.CPURequest), cpu(r.CPULimit), memory(r.MemoryRequest), memory(r.MemoryLimit))
	}
	row("pod", e.Pod)
	for i, c := range o.Pod.Spec.InitContainers {
		row(c.Name+" (init)", e.InitContainers[i])
	}
	for i, c := range o.Pod.Spec.Containers {
		row(c.Name, e.Containers[i])
	}
}

// cpu and memory write an amount as a manifest would; 0 is none.
func cpu(milli int64) string {
	if milli == 0 {
		return "-"
	}
	return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
}

func memory(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}
