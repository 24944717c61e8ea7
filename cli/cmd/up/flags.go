package up

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/pod"
)

// logLimitFlags returns the flags of log sizes, for pods whose manifests set none.
func logLimitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "log-max-size", Usage: "rotate a container's log at this `SIZE`, unless the pod has the annotation " + podutil.AnnotationLogMaxSize + " (default: 10Mi)"},
		&cli.StringFlag{Name: "log-max-files", Usage: "keep this many `FILES` of a container's log, unless the pod has the annotation " + podutil.AnnotationLogMaxFiles + " (default: 5)"},
	}
}

// checkLogLimits checks the values of the log flags.
func checkLogLimits(c *cli.Context) error {
	if text := c.String("log-max-size"); c.IsSet("log-max-size") {
		if _, err := podutil.ParseLogMaxSize(text); err != nil {
			return cmdutil.UsageErrorf("up", "--log-max-size cannot be %q: it %v", text, err)
		}
	}
	if text := c.String("log-max-files"); c.IsSet("log-max-files") {
		if _, err := podutil.ParseLogMaxFiles(text); err != nil {
			return cmdutil.UsageErrorf("up", "--log-max-files cannot be %q: it %v", text, err)
		}
	}
	return nil
}

// applyLogLimits adds the annotations of the log flags to pods.
func applyLogLimits(c *cli.Context, pods []manifest.Object) {
	for flag, key := range map[string]string{"log-max-size": podutil.AnnotationLogMaxSize, "log-max-files": podutil.AnnotationLogMaxFiles} {
		if !c.IsSet(flag) {
			continue
		}
		for i := range pods {
			p := pods[i].Pod
			if _, ok := p.Annotations[key]; ok {
				continue
			}
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[key] = c.String(flag)
		}
	}
}

// checkNetwork checks the value of --network.
func checkNetwork(c *cli.Context) error {
	if mode := c.String("network"); c.IsSet("network") && !slices.Contains(pod.NetworkModes, mode) {
		return cmdutil.UsageErrorf("up", "--network cannot be %q: it is one of %s", mode, strings.Join(pod.NetworkModes, ", "))
	}
	return nil
}

// applyNetworkFlag sets the network of --network on pods that set none.
func applyNetworkFlag(c *cli.Context, pods []manifest.Object) error {
	if !c.IsSet("network") {
		return nil
	}
	var errs []error
	for i := range pods {
		if pods[i].Pod != nil {
			errs = append(errs, manifest.SetNetwork(&pods[i], c.String("network")))
		}
	}
	return errors.Join(errs...)
}

func pullFlag() cli.Flag {
	return &cli.StringFlag{Name: "pull", Usage: "what to do about images instead of their imagePullPolicy, this time: `POLICY` is always, missing, never, or newer, which is always, but takes what is here if the registry cannot be asked"}
}

func checkPull(c *cli.Context) error {
	word := c.String("pull")
	if _, known := podup.PullPolicies[word]; c.IsSet("pull") && !known {
		return cmdutil.UsageErrorf("up", "--pull takes always, missing, never or newer, not %q", word)
	}
	return nil
}

func exitCodeFromFlag() cli.Flag {
	return &cli.StringFlag{Name: "exit-code-from", Usage: "end with the exit code of this `CONTAINER`; or: any, all (fail if any or all app containers failed), none (never fail because of them)"}
}

// reportIgnored reports each kind of object that has no effect on one machine, once. If strict, that is
// an error.
func reportIgnored(env *cmdutil.Env, idle []manifest.Object, strict bool) error {
	said := map[string]bool{}
	var errs []error
	for i := range idle {
		o := &idle[i]
		if said[o.Kind] {
			continue
		}
		said[o.Kind] = true
		if text := fmt.Sprintf("%s: %s %s has no effect: %s", resource.Location(o), o.Kind, o.Name(), o.Ignored); strict {
			errs = append(errs, report.New(report.Usage, "remove it, or leave out --strict", "%s", text))
		} else {
			fmt.Fprintln(env.ErrOut, report.Escape("podrun: warning: "+text))
		}
	}
	return errors.Join(errs...)
}
