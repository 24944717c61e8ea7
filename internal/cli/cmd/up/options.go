package up

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/cli/internal/filesync"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// manifestOptions are the options of all commands that take manifests.
type manifestOptions struct {
	env           *cmdutil.Env
	files         []string
	strict        bool
	policy        string
	unsafeSysctls []string    // --allow-unsafe-sysctl
	builds        []api.Build // of the images of compose files
	named         string      // the command or option that requires that objects have names; "" if none does
}

func (o *manifestOptions) complete(c *cli.Context) (err error) {
	o.strict, o.policy, o.unsafeSysctls = c.Bool("strict"), c.String("policy"), c.StringSlice("allow-unsafe-sysctl")
	o.env.Policy, o.env.Pull = o.policy, o.env.RegistryOptions(c)
	o.env.ArtifactPath, o.env.EnvFiles = c.String("path"), c.StringSlice("env-file")
	if o.files, err = resource.FilesOf(o.env, c, c.Args().Slice()); err == nil && c.Command.Name == "up" {
		o.findProject()
	}
	return err
}

// findProject makes up without files use the compose files of the directory, and takes words after a file that are no files
// for services of a compose file.
func (o *manifestOptions) findProject() {
	if len(o.files) == 0 {
		o.env.Compose.Search = o.env.Compose.Converted == nil && compose.Present(o.env, ".")
		return
	}
	isFile := func(word string) bool {
		_, err := os.Stat(word)
		return err == nil || word == "-" || resource.IsURL(word) || resource.IsArtifact(word) || strings.Contains(word, "/") || resource.IsManifestName(word)
	}
	for i, word := range o.files {
		if i > 0 && !isFile(word) {
			o.env.Compose.Request.Services = o.files[i:]
			o.files = o.files[:i]
			return
		}
	}
}

// buildFlags returns the flags for builds of images.
func buildFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "build", Usage: "of compose files: build the images even if nothing has changed"},
		cmdutil.BuilderFlag(),
	}
}

// hasFiles reports whether there is something to run.
func (o *manifestOptions) hasFiles() bool {
	return len(o.files) > 0 || o.env.Compose.Search || o.env.Compose.Converted != nil
}

// read reads the manifests. If there is an error, it returns those without one.
func (o *manifestOptions) read() (resource.Documents, []resource.Source, error) {
	sources, readErr := resource.ReadFiles(o.env, o.files)
	for _, s := range sources {
		compose.Warn(o.env, s.Warnings)
		if o.builds = append(o.builds, s.Builds...); len(o.files) == 0 {
			o.files = s.Files
		}
	}
	docs, err := resource.Load(sources)
	if o.named != "" {
		err = errors.Join(err, resource.RefuseGenerated(docs, o.named))
	}
	return docs, sources, errors.Join(readErr, err)
}

// loadManifests reads the manifests, and reports objects that have no effect.
func (o *manifestOptions) loadManifests() (resource.Documents, error) {
	docs, _, err := o.read()
	if err != nil {
		return docs, err
	}
	return docs, resource.ReportIgnored(o.env.ErrOut, docs.WithoutEffect(), o.strict)
}

// admit is admission.AdmitManifests with the options of the command.
func (o *manifestOptions) admit(dirs store.Dirs, docs resource.Documents) error {
	return admission.AdmitManifests(o.env, dirs, docs, o.policy, o.unsafeSysctls)
}

// runOptions are the options of up and apply. A flag that apply does not have has its zero value.
type runOptions struct {
	manifestOptions
	atomicOptions
	dryRun                  cmdutil.DryRun
	replace, requireLimits  bool
	onlyNew                 bool // of create -f: objects that exist are an error
	pull                    image.PullOptions
	pullPolicy              string // --pull
	network                 string
	publish                 []podutil.PublishedPort
	autoUpdate              []string
	exitCodeFrom            string
	watch                   bool
	sync                    []syncFlag
	rules                   []filesync.Rule // of --watch
	logMaxSize, logMaxFiles string
	timeout                 time.Duration // 0: none

	preparation *cmdutil.Preparation // nil unless a process was prespawned
}

func newRunOptions(env *cmdutil.Env) runOptions {
	return runOptions{manifestOptions: manifestOptions{env: env}}
}

func (o *runOptions) complete(c *cli.Context) error {
	o.dryRun, o.replace, o.pull = cmdutil.DryRunOf(c), c.Bool("replace"), o.env.RegistryOptions(c)
	return o.manifestOptions.complete(c)
}

// applyToPods sets in the pods what options set.
func (o *runOptions) applyToPods(docs *resource.Documents) error {
	if len(o.publish)+len(o.autoUpdate) > 0 && len(docs.Workloads) > 0 {
		w := &docs.Workloads[0]
		return report.New(report.Usage, "set hostPort in the template; podrun update updates Pods only", "--publish and --auto-update apply to Pods only: %s is a %s", resource.Location(w), w.Kind)
	}
	o.applyLogLimits(docs.Pods)
	if err := o.applyNetwork(docs.Pods); err != nil {
		return err
	}
	if err := o.applySync(docs.Pods); err != nil {
		return err
	}
	if err := manifest.SetAutoUpdate(docs.Pods, o.autoUpdate); err != nil {
		return report.New(report.Usage, "", "--auto-update: %w", err)
	}
	if err := manifest.Publish(docs.Pods, o.publish); err != nil {
		return report.New(report.Usage, "", "--publish: %w", err)
	}
	return nil
}

// applyLogLimits adds the annotations of --log-max-size and --log-max-files to pods without them.
func (o *runOptions) applyLogLimits(pods []manifest.Object) {
	for key, value := range map[string]string{podutil.AnnotationLogMaxSize: o.logMaxSize, podutil.AnnotationLogMaxFiles: o.logMaxFiles} {
		for i := range pods {
			p := pods[i].Pod
			if _, ok := p.Annotations[key]; ok || value == "" {
				continue
			}
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[key] = value
		}
	}
}

// applyNetwork sets the network of --network on pods that set none.
func (o *runOptions) applyNetwork(pods []manifest.Object) error {
	if o.network == "" {
		return nil
	}
	var errs []error
	for i := range pods {
		if pods[i].Pod != nil {
			errs = append(errs, manifest.SetNetwork(&pods[i], o.network))
		}
	}
	return errors.Join(errs...)
}
