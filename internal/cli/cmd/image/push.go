package image

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
)

func imagePushCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "push",
		Usage:     "write an image to a registry",
		ArgsUsage: "IMAGE [DESTINATION] | DIRECTORY oci://DESTINATION",
		Description: `Writes an image to the registry in its name, or to another name, and prints
REPOSITORY@DIGEST, by which the image can be pulled. Layers that the repository
has are not sent again. Layers are compressed again, so the digest may differ
from the pulled image's; its ID stays. Logins are from
podrun login, podman or docker.

With oci:// it writes the manifests of a directory as an artifact, which podrun
up and Flux read: all its files but .git. The same files give the same layer.
With --pin the images of the manifests have digests in the artifact: those for
which their tags stand in their registries now. The files stay as they are.

Examples:
  podrun image push registry.example.org/team/web:1.4
  podrun image push localhost/web registry.example.org/team/web:1.4
  podrun image push --tls-verify=false web:1.4 192.168.1.5:5000/web:1.4
  podrun image push ./manifests oci://registry.example.org/team/set:1
  podrun image push --pin ./manifests oci://registry.example.org/team/set:1
`,
		Flags: []cli.Flag{
			cmdutil.AuthfileFlag(), cmdutil.TLSVerifyFlag(),
			&cli.StringFlag{Name: "source", Usage: "of an artifact: the `URL` where its files come from"},
			&cli.StringFlag{Name: "revision", Usage: "of an artifact: the `REVISION` there, such as main@sha1:COMMIT"},
			&cli.StringSliceFlag{Name: "annotation", Aliases: []string{"a"}, Usage: "of an artifact: another annotation, `KEY=VALUE`"},
			&cli.BoolFlag{Name: "pin", Usage: "of an artifact: add the digests of the images to the references in its manifests"},
		},
		Action: func(c *cli.Context) error { return runPush(env, c) },
	}
}

func runPush(env *cmdutil.Env, c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return cmdutil.UsageErrorf("image push", "image push requires the name of one image, and optionally its name in the registry")
	}
	source, to := c.Args().Get(0), c.Args().Get(1)
	name, isTree := strings.CutPrefix(to, "oci://")
	annotations, err := artifactAnnotations(env, c, isTree)
	if err != nil {
		return err
	}
	options, err := env.PullOptions(c)
	if err != nil {
		return err
	}
	s, err := env.ImageStore()
	if err != nil {
		return err
	}
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	shown := progress.New(env, "pushing")
	options.Progress = shown.Update
	shown.Wait("pushing %s", source)
	return cmdutil.Interruptible(c.Context, signals, func(ctx context.Context) (err error) {
		var there string
		var pinned map[string][]byte
		if c.Bool("pin") {
			pinned, err = pinFiles(ctx, s, source, options)
		}
		switch {
		case err != nil:
		case isTree:
			there, err = s.PushTree(ctx, source, name, annotations, pinned, options)
		default:
			there, err = s.Push(ctx, source, to, options)
		}
		shown.End()
		if err == nil {
			fmt.Fprintln(env.Out, there)
		}
		return err
	})
}

// artifactAnnotations returns the annotations of an artifact that is to be pushed (fluxcd/pkg: oci/metadata.go).
func artifactAnnotations(env *cmdutil.Env, c *cli.Context, isTree bool) (map[string]string, error) {
	if !isTree {
		if c.IsSet("source") || c.IsSet("revision") || c.IsSet("annotation") || c.IsSet("pin") {
			return nil, cmdutil.UsageErrorf("image push", "--source, --revision, --annotation and --pin are of an artifact: podrun image push DIRECTORY oci://DESTINATION")
		}
		return nil, nil
	}
	created := time.Now()
	if epoch := env.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return nil, cmdutil.UsageErrorf("image push", "$SOURCE_DATE_EPOCH cannot be %q: it is a number of seconds", epoch)
		}
		created = time.Unix(seconds, 0)
	}
	annotations := map[string]string{image.AnnotationCreated: created.UTC().Format(time.RFC3339)}
	for key, flag := range map[string]string{image.AnnotationSource: "source", image.AnnotationRevision: "revision"} {
		if c.IsSet(flag) {
			annotations[key] = c.String(flag)
		}
	}
	for _, text := range c.StringSlice("annotation") {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, cmdutil.UsageErrorf("image push", "--annotation cannot be %q: use KEY=VALUE", text)
		}
		annotations[key] = value
	}
	return annotations, nil
}
