package wait

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

// NewConditionCommand returns the command condition.
func NewConditionCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "condition",
		Usage: "set conditions of a pod",
		Description: `Sets the conditions of a pod that its manifest names as readiness gates.

Examples:
  podrun condition set web example.com/in-rotation=True
`,
		Subcommands: []*cli.Command{{
			Name:      "set",
			Usage:     "set a condition of a pod",
			ArgsUsage: "POD TYPE=STATUS...",
			Description: `Sets conditions of a running pod to True, False or Unknown. A pod with a
condition in spec.readinessGates is Ready only when that condition is True. The
conditions that podrun sets (Ready and the like) cannot be set.

Examples:
  podrun condition set web example.com/in-rotation=True
  podrun condition set web warm=False --reason Reload --message "cache is cold"
`,
			Flags: []cli.Flag{
				cmdutil.NamespaceFlag(),
				&cli.StringFlag{Name: "reason", Usage: "the reason, one `WORD`"},
				&cli.StringFlag{Name: "message", Usage: "the message, a human-readable `TEXT`"},
			},
			Action: cmdutil.Action(func() cmdutil.Command { return &setOptions{env: env} }),
		}},
		Action: cmdline.NeedSubcommand("condition", "condition requires set"),
	}
}

// setOptions are the command line of condition set.
type setOptions struct {
	env       *cmdutil.Env
	namespace string
	words     []string // the pod, and TYPE=STATUS of each condition
	wanted    []wire.ConditionRequest
}

// Complete implements cmdutil.Command.
func (o *setOptions) Complete(c *cli.Context) error {
	o.namespace, o.words = c.String("namespace"), c.Args().Slice()
	for _, word := range o.words[min(1, len(o.words)):] {
		kind, status, _ := strings.Cut(word, "=")
		o.wanted = append(o.wanted, wire.ConditionRequest{Type: kind, Status: status, Reason: c.String("reason"), Message: c.String("message")})
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *setOptions) Validate() error {
	if len(o.wanted) == 0 {
		return cmdutil.UsageErrorf("condition set", "condition set requires a pod and TYPE=STATUS")
	}
	for _, w := range o.wanted {
		switch {
		case len(validation.IsQualifiedName(w.Type)) > 0:
			return cmdutil.UsageErrorf("condition set", "%q is not a valid condition type: use the form of a label key, such as example.com/open", w.Type)
		case !slices.Contains([]string{"True", "False", "Unknown"}, w.Status):
			return cmdutil.UsageErrorf("condition set", "the condition %s must be True, False or Unknown, not %q", w.Type, w.Status)
		}
	}
	return nil
}

// Run sets one condition after the other.
func (o *setOptions) Run(ctx context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	p, err := resource.ExistingPod(dirs, o.namespace, o.words[0])
	if err != nil {
		return err
	}
	for _, w := range o.wanted {
		conn, err := podclient.Send(ctx, p, wire.Request{Verb: wire.SetCondition, Condition: &w})
		if err != nil {
			return report.New(report.Failure, "podrun ps shows its state", "cannot set condition %s of pod %s: %w", w.Type, p.Name, err)
		}
		frame, _, err := wire.ReadFrame(conn)
		conn.Close()
		switch {
		case err != nil:
			return fmt.Errorf("set condition %s of pod %s: %w", w.Type, p.Name, err)
		case frame.Error != nil:
			return podclient.ResponseError(frame.Error)
		}
		fmt.Fprintf(o.env.Out, "pod/%s condition %s=%s\n", p.Name, w.Type, w.Status)
	}
	return nil
}
