package compose

import (
	"context"
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

func downCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "stop and remove the services",
		ArgsUsage: "[SERVICE...]",
		Description: `Stops and removes the pods of the project, then its Services, ConfigMaps,
Secrets and NetworkPolicies. It needs no file: without one it removes all pods
of the project. Claims, the named volumes, stay unless -v is given. With SERVICE
it removes only the pods of these.

Examples:
  podrun compose down
  podrun compose -p shop down -v
`,
		Flags: flagsWith(
			&cli.BoolFlag{Name: "volumes", Aliases: []string{"v"}, Usage: "also delete the claims of the project, with their files"},
			&cli.BoolFlag{Name: "remove-orphans", Usage: "also remove the pods of services that are not in the files"},
			timeoutFlag(),
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &downOptions{options: options{env: env}} }),
	}
}

// timeoutFlag returns the flag -t of commands that stop pods.
func timeoutFlag() cli.Flag {
	return &cli.Int64Flag{Name: "timeout", Aliases: []string{"t"}, Usage: "kill what has not stopped after this many `SECONDS`, instead of stop_grace_period"}
}

type downOptions struct {
	options
	volumes, removeOrphans bool
	grace                  []string // for podrun down
}

func (o *downOptions) Complete(c *cli.Context) error {
	o.complete(c)
	o.volumes, o.removeOrphans = c.Bool("volumes"), c.Bool("remove-orphans")
	o.grace = passedOn{"timeout": "grace-period"}.complete(c)
	return nil
}

func (o *downOptions) Validate() error {
	if o.volumes && len(o.words) > 0 {
		return cmdutil.UsageErrorf(o.command, "-v removes the volumes of the whole project: name no services")
	}
	return nil
}

func (o *downOptions) Run(ctx context.Context) error {
	p, pods, err := o.selected(o.words, true)
	if err != nil {
		return err
	}
	whole := len(o.words) == 0
	if err := refuseParts(pods); err != nil {
		return err
	}
	if whole {
		pods = p.members // also the pods of compose run
		if p.known != nil && !o.removeOrphans {
			orphan := func(m member) bool { return m.first != "" && !has(p.known, m.first) }
			orphans := slices.DeleteFunc(slices.Clone(pods), func(m member) bool { return !orphan(m) })
			o.reportOrphans(p, orphans)
			pods = slices.DeleteFunc(slices.Clone(pods), orphan)
		}
	}
	var after, claims []kindnames.ObjectRef
	if whole {
		if after, claims, err = p.objects(); err != nil {
			return err
		}
	}
	if len(pods)+len(after)+len(claims) == 0 {
		o.reportEmpty(p)
		return nil
	}
	if len(pods) > 0 {
		if err := o.again(cmdutil.Compose{}, "down", append(o.grace, names(pods)...)...); err != nil {
			return err // the pods may still need the objects
		}
	}
	if !o.volumes {
		return objects.DeleteWithPods(ctx, o.env, p.dirs, append(after, claims...))
	}
	var free []objects.ClaimRef
	for _, c := range claims {
		free = append(free, objects.ClaimRef{Namespace: c.Namespace, Name: c.Name})
	}
	return errors.Join(objects.DeleteWithPods(ctx, o.env, p.dirs, after), objects.RemoveFreeVolumes(o.env, p.dirs, free))
}

// objects returns the objects that were made for the project, and separately its claims. External objects do not belong to
// it, nor does an object of a manifest with the same label.
func (p *project) objects() (list, claims []kindnames.ObjectRef, err error) {
	for _, kind := range []pod.ObjectKind{pod.KindService, pod.KindConfigMap, pod.KindSecret, pod.KindNetworkPolicy, pod.KindClaim} {
		found, err := p.dirs.Objects(kind, p.namespace)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range found {
			ref := kindnames.ObjectRef{Kind: kind, Namespace: o.Namespace, Name: o.Name}
			switch {
			case o.Annotations[podutil.AnnotationComposeProject] != p.name:
			case kind == pod.KindClaim:
				claims = append(claims, ref)
			default:
				list = append(list, ref)
			}
		}
	}
	return list, claims, nil
}
