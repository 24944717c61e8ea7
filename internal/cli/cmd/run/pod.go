package run

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/manifest/runpod"
	"github.com/podrun/podrun/internal/report"
)

// newPod makes the Pod, and the claims of its named volumes.
func (o *options) newPod() (*runpod.Pod, error) {
	container := containerName(o.image)
	name := o.name
	if name == "" {
		name = container + "-" + cmdutil.RandomSuffix()
	}
	if list := validation.IsDNS1123Subdomain(name); len(list) > 0 {
		return nil, usageErrorf("--name cannot be %q: %s", name, list[0])
	}
	return o.podOf(name, container)
}

// podOf makes the Pod of the command line with a container.
func (o *options) podOf(name, container string) (*runpod.Pod, error) {
	p := runpod.New(name)
	p.Namespace = o.env.NamespaceFlag
	c := p.Add(container, o.image, o.env.OptionHost())
	// The end of the local input ends the container's input only if podrun attaches to it.
	c.Stdin, c.StdinOnce, c.TTY = o.stdin, o.stdin && !o.detach, o.tty
	c.Command(o.command)
	var errs []error
	for _, s := range o.settings {
		if err := c.Set(s.option, s.value); err != nil {
			errs = append(errs, optionError(s, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := p.Finish(); err != nil {
		return nil, usageErrorf("%w", err)
	}
	return p, nil
}

// publishExposed publishes the ports that the image exposes, which it pulls for that.
func (o *options) publishExposed(ctx context.Context) error {
	images, err := o.env.ImageStore()
	if err != nil {
		return err
	}
	policy := image.IfNotPresent
	for _, s := range o.settings {
		if s.option == "pull" {
			policy = map[string]string{"always": image.Always, "never": image.Never}[s.value]
		}
	}
	shown := progress.New(o.env, "pulling")
	shown.Wait("pulling %s", o.image)
	defer shown.End()
	pull := o.registry
	pull.Progress = shown.Update
	if _, err := images.Ensure(ctx, o.image, policy, pull); err != nil {
		return err
	}
	found, err := images.Inspect(o.image)
	if err != nil {
		return err
	}
	for _, port := range slices.Sorted(maps.Keys(found.Config.ExposedPorts)) {
		o.settings = append(o.settings, setting{"publish", port})
	}
	return nil
}

// optionError names the option of an error, unless the error names a file and has a class of its own.
func optionError(s setting, err error) error {
	if hinted := (*report.Error)(nil); errors.As(err, &hinted) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return report.New(report.Failure, "", "--%s %s: %w", s.option, s.value, err)
	}
	return usageErrorf("--%s %s: %w", s.option, s.value, err)
}

// containerName makes a container's name from its image's name.
func containerName(name string) string {
	base, _, _ := strings.Cut(path.Base(name), "@")
	base, _, _ = strings.Cut(base, ":")
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, base)
	if name = strings.Trim(name[:min(len(name), 50)], "-"); name == "" {
		return "run"
	}
	return name
}
