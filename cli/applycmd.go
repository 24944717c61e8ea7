package cli

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/urfave/cli/v2"
)

func (f *front) applyCommand() *cli.Command {
	return &cli.Command{
		Name:      "apply",
		Usage:     "bring what manifests say into being, and return",
		ArgsUsage: "FILE... | -f FILE|DIRECTORY|URL | -",
		Description: `Keeps the ConfigMaps, Secrets, PersistentVolumeClaims, Services and Namespaces
of manifests for pods to refer to, and starts or changes their pods, as up does;
it does not wait for them to run, nor for images that are missing, which are
pulled in the background. Nothing is done unless all of it is right.
Pods that refer to an object which has changed are told; one that waits for it
starts.

Secrets are kept in memory only: a reboot clears them.

Examples:
  podrun apply -f settings.yaml
  podrun apply -f settings.yaml -f web.yaml
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "apply what is in this `FILE` (- is standard input)"},
			ofManifests(),
			&cli.BoolFlag{Name: "replace", Usage: "stop and remove a running pod that cannot become what its manifest says, and run it anew"},
			answerFlag(),
			dryRunFlag(dryRunUsage),
			strictFlag(),
			policyFlag(),
			tlsVerifyFlag(),
		},
		Action: func(c *cli.Context) error { return f.answered(c, (*front).apply) },
	}
}

func strictFlag() cli.Flag {
	return &cli.BoolFlag{Name: "strict", Usage: "refuse objects that have no effect on one machine, instead of warning of them"}
}

func (f *front) apply(c *cli.Context) error {
	files := append(c.StringSlice("filename"), c.Args().Slice()...)
	if len(files) == 0 {
		return usageErrorf("apply", "apply takes files")
	}
	if how := dryRunOf(c); how != dryNone {
		return f.rehearse(c, files, how)
	}
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	defer f.foresee().end()
	l, _, err := f.newLaunch(c, files)
	if err != nil {
		return err
	}
	defer l.release()
	l.said, l.background = f.out, true
	if err := interruptible(c.Context, signals, l.prepare); err != nil {
		return err
	}
	was := map[*upPod]string{}
	for _, p := range l.pods {
		was[p] = p.becomes()
	}
	err = l.start()
	for _, p := range l.started() {
		_, werr := fmt.Fprintf(f.out, "pod/%s %s\n", p.place.Name, was[p])
		if p.awaits {
			fmt.Fprintf(f.err, "podrun: pod %[1]s waits for its images, which are pulled now; podrun events %[1]s shows how they come\n", p.place.Name)
		}
		err = errors.Join(err, werr)
	}
	for _, w := range l.workplaces() {
		err = errors.Join(err, f.control(l.dirs, w))
	}
	return err
}
