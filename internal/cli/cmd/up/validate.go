package up

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	internalresource "github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/support"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// NewValidateCommand returns the command validate.
func NewValidateCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check manifests and show how podrun handles each field",
		ArgsUsage: "FILE... | -f FILE|DIR|URL|oci://REF | -k DIR | -",
		Description: `Checks manifests as up does, without starting anything. For every field it
prints whether podrun supports it (supported), reads it without any effect
(accepted), or does not support it (refused); then the effective limits of the
pod.

-o json prints an object with valid, objects (each with its fields) and errors
(each with file, document, line and field).

Examples:
  podrun validate web.yaml
  generate-pod | podrun validate -
  podrun validate -q web.yaml && echo valid
  podrun validate -o json web.yaml
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "check this `FILE` (- is standard input)"},
			cmdutil.KustomizeFlag(),
			cmdutil.AllowRemoteFlag(),
			cmdutil.PathFlag(),
			cmdutil.EnvFileFlag(),
			cmdutil.ManifestNamespaceFlag(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print errors only"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print `FORMAT`: json"},
			cmdutil.StrictFlag(),
			cmdutil.PolicyFlag(),
			cmdutil.UnsafeSysctlFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &validateOptions{manifestOptions: manifestOptions{env: env}} }),
	}
}

// validateOptions are the options of validate.
type validateOptions struct {
	manifestOptions
	quiet  bool
	format string // "" or json
}

// Complete reads the command line.
func (o *validateOptions) Complete(c *cli.Context) error {
	if err := o.complete(c); err != nil {
		return err
	}
	o.quiet, o.format = c.Bool("quiet"), c.String("output")
	return nil
}

// Validate checks the options.
func (o *validateOptions) Validate() error {
	switch {
	case len(o.files) == 0:
		return cmdutil.UsageErrorf("validate", "validate requires the files of pods")
	case o.format != "" && o.format != "json":
		return cmdutil.UsageErrorf("validate", "unknown output format %q: use json", o.format)
	}
	return nil
}

// Run checks the manifests, and prints how podrun handles each field.
func (o *validateOptions) Run(context.Context) error {
	env := o.env
	docs, sources, err := o.read()
	dirs, dirsErr := env.Dirs()
	if dirsErr != nil {
		return dirsErr
	}
	good := slices.Concat(docs.Pods, docs.Workloads, docs.Stored)
	err = errors.Join(err, internalresource.ReportIgnored(env.ErrOut, docs.Ignored, o.strict), o.admit(dirs, docs))
	switch {
	case o.format == "json":
		return errors.Join(err, printValidation(env, good, docs.Ignored, err))
	case o.quiet:
		return err
	}
	for i := range good {
		printFindings(env, &good[i], good[i].Findings)
		if good[i].Pod != nil {
			printEffective(env, &good[i])
		}
	}
	if err != nil && len(good) == 0 {
		printInvalid(env, sources)
	}
	return err
}

// printInvalid prints the fields of files that can be decoded but fail validation. Decoding errors are
// already printed.
func printInvalid(env *cmdutil.Env, sources []internalresource.Source) {
	for _, src := range sources {
		written, err := manifest.Decode(src.Name, src.Data)
		if err != nil {
			continue
		}
		for i := range written {
			printFindings(env, &written[i], written[i].FindFields())
		}
	}
}

func printFindings(env *cmdutil.Env, o *manifest.Object, findings []support.Finding) {
	fmt.Fprintf(env.Out, "%s: %s %s\n", report.Escape(internalresource.Location(o)), strings.ToLower(o.Kind), report.Escape(o.Name()))
	for _, found := range findings {
		line := fmt.Sprintf("  %-9s  %s", found.Support, found.Path)
		if found.Note != "" {
			line += ": " + found.Note
		}
		fmt.Fprintln(env.Out, report.Escape(line))
	}
}

// printEffective prints the resources that the pod and its containers may use.
func printEffective(env *cmdutil.Env, o *manifest.Object) {
	e := o.Effective
	if e.Pod.IsZero() {
		fmt.Fprintf(env.Out, "  no requests or limits (QoS %s)\n", e.QOSClass)
		return
	}
	fmt.Fprintf(env.Out, "  effective resources, by the rule %q (QoS %s):\n", e.Rule, e.QOSClass)
	row := func(name string, r pod.Resources) {
		pids := ""
		if r.Pids > 0 {
			pids = fmt.Sprintf(", at most %d processes", r.Pids)
		}
		fmt.Fprintf(env.Out, "    %s: cpu %s to %s, memory %s to %s%s\n", name,
			cpu(r.CPURequest), cpu(r.CPULimit), memory(r.MemoryRequest), memory(r.MemoryLimit), pids)
	}
	row("pod", e.Pod)
	for i, c := range o.Pod.Spec.InitContainers {
		row(c.Name+" (init)", e.InitContainers[i])
	}
	for i, c := range o.Pod.Spec.Containers {
		row(c.Name, e.Containers[i])
	}
}

// cpu returns an amount of CPU in the notation of a manifest, or "-" for 0.
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
