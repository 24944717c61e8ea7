package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/podutil"
)

// logLimitFlags are for pods whose manifests do not say how large their logs may be.
func logLimitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "log-max-size", Usage: "rotate a container's log at this `SIZE`, unless the pod has the annotation " + podutil.AnnotationLogMaxSize + " (default: 10Mi)"},
		&cli.StringFlag{Name: "log-max-files", Usage: "keep this many `FILES` of a container's log, unless the pod has the annotation " + podutil.AnnotationLogMaxFiles + " (default: 5)"},
	}
}

// checkLogLimits refuses what the flags cannot be.
func checkLogLimits(c *cli.Context) error {
	if text := c.String("log-max-size"); c.IsSet("log-max-size") {
		if _, err := podutil.ParseLogMaxSize(text); err != nil {
			return usageErrorf("up", "--log-max-size cannot be %q: it %v", text, err)
		}
	}
	if text := c.String("log-max-files"); c.IsSet("log-max-files") {
		if _, err := podutil.ParseLogMaxFiles(text); err != nil {
			return usageErrorf("up", "--log-max-files cannot be %q: it %v", text, err)
		}
	}
	return nil
}

// limitLogs gives pods the annotations that the flags stand for.
func limitLogs(c *cli.Context, pods []manifest.Object) {
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
