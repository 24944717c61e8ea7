package wait

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/cli/internal/cmdline"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/resource"
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
			Description: `Sets conditions of a running pod to True, False or Unknown. A pod whose manifest
names a condition in spec.readinessGates is Ready only when that is True. The
conditions that follow from the pod (Ready and the like) cannot be set.

Examples:
  podrun condition set web example.com/in-rotation=True
  podrun condition set web warm=False --reason Reload --message "cache is cold"
`,
			Flags: []cli.Flag{
				cmdutil.NamespaceFlag(),
				&cli.StringFlag{Name: "reason", Usage: "why, as one `WORD`"},
				&cli.StringFlag{Name: "message", Usage: "why, as a `TEXT` for people"},
			},
			Action: func(c *cli.Context) error { return setConditions(env, c) },
		}},
		Action: cmdline.NeedSubcommand("condition", "condition takes set"),
	}
}

func setConditions(env *cmdutil.Env, c *cli.Context) error {
	words := c.Args().Slice()
	if len(words) < 2 {
		return cmdutil.UsageErrorf("condition set", "condition set takes a pod and TYPE=STATUS")
	}
	var wanted []wire.ConditionRequest
	for _, word := range words[1:] {
		kind, status, _ := strings.Cut(word, "=")
		switch {
		case len(validation.IsQualifiedName(kind)) > 0:
			return cmdutil.UsageErrorf("condition set", "%q is no type of a condition: that is like a label's key, example.com/open", kind)
		case !slices.Contains([]string{"True", "False", "Unknown"}, status):
			return cmdutil.UsageErrorf("condition set", "the condition %s is to be True, False or Unknown, not %q", kind, status)
		}
		wanted = append(wanted, wire.ConditionRequest{Type: kind, Status: status, Reason: c.String("reason"), Message: c.String("message")})
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	p, err := resource.ExistingPod(dirs, c.String("namespace"), words[0])
	if err != nil {
		return err
	}
	for _, w := range wanted {
		conn, err := podclient.Ask(c.Context, p, wire.Request{Verb: wire.SetCondition, Condition: &w})
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
		fmt.Fprintf(env.Out, "pod/%s condition %s=%s\n", p.Name, w.Type, w.Status)
	}
	return nil
}
