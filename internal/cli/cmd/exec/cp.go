package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/treetar"
	"github.com/podrun/podrun/internal/wire"
)

// NewCpCommand returns the command cp.
func NewCpCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "cp",
		Usage:     "copy files and directories to and from containers",
		ArgsUsage: "SOURCE DESTINATION",
		Description: `One of the two is in a container, POD:PATH or NAMESPACE/POD:PATH; the other is a
local path, or - for a tar stream. As with cp, SOURCE is copied into an existing
directory, and otherwise gets the name of the destination; SOURCE/. is the
content of a directory. The image needs no tar. PATH is relative to the
container's working directory; links cannot lead out of the container.

Permissions and times are kept. Files that are copied into a container belong to
its user, files of a stream to the owners in the stream. Files that are copied
out belong to you; links out of the copied directory, devices and pipes are
skipped.

Examples:
  podrun cp page.html web:/srv/www/
  podrun cp web:/var/log/app ./logs
  podrun cp ./conf/. web:/etc/app -c server
  podrun cp web:/data - | gzip > data.tar.gz
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "the `CONTAINER`, instead of the first"},
			&cli.BoolFlag{Name: "no-preserve", Usage: "into a container: use default permissions and the container's user instead of the files'"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &cpOptions{env: env} }),
	}
}

// copyLocation is one side of a copy: a path, and the pod that contains it, if any.
type copyLocation struct{ namespace, pod, path string }

// parseCopyLocation parses POD:PATH, NAMESPACE/POD:PATH, or a local path (kubectl: pkg/cmd/cp).
func parseCopyLocation(word, namespace string) (copyLocation, error) {
	before, after, is := strings.Cut(word, ":")
	if !is || strings.HasPrefix(word, "/") || strings.HasPrefix(word, ".") {
		return copyLocation{path: word}, nil
	}
	if space, name, qualified := strings.Cut(before, "/"); qualified && !strings.HasPrefix(before, "pod/") {
		namespace, before = space, name
	}
	if before == "" || namespace == "" || after == "" || strings.Contains(strings.TrimPrefix(before, "pod/"), "/") {
		return copyLocation{}, cmdutil.UsageErrorf("cp", "%q: filespec must match the canonical format: [[namespace/]pod:]file/path", word)
	}
	return copyLocation{namespace, before, after}, nil
}

type cpOptions struct {
	env                  *cmdutil.Env
	namespace, container string
	words                []string
	plain                bool
	from, to             copyLocation
}

func (o *cpOptions) Complete(c *cli.Context) error {
	o.namespace, o.container, o.plain = c.String("namespace"), c.String("container"), c.Bool("no-preserve")
	o.words = c.Args().Slice()
	return nil
}

func (o *cpOptions) Validate() (err error) {
	if len(o.words) != 2 {
		return cmdutil.UsageErrorf("cp", "cp requires a source and a destination")
	}
	if o.from, err = parseCopyLocation(o.words[0], o.namespace); err != nil {
		return err
	}
	if o.to, err = parseCopyLocation(o.words[1], o.namespace); err != nil {
		return err
	}
	switch {
	case o.from.path == "" || o.to.path == "":
		return cmdutil.UsageErrorf("cp", "filepath can not be empty")
	case o.from.pod != "" && o.to.pod != "":
		return cmdutil.UsageErrorf("cp", "one of src or dest must be a local file specification: copy to a local file first")
	case o.from.pod == "" && o.to.pod == "":
		return cmdutil.UsageErrorf("cp", "one of src or dest must be a remote file specification: POD:PATH")
	}
	return nil
}

func (o *cpOptions) Run(ctx context.Context) error {
	if o.from.pod != "" {
		return o.copyOut(ctx)
	}
	return o.copyIn(ctx)
}

// copyJob is a copy from or to a container.
type copyJob struct {
	env *cmdutil.Env
	pod store.Pod
	req wire.CopyRequest
}

func (o *cpOptions) newJob(location copyLocation) (*copyJob, error) {
	dirs, err := o.env.Dirs()
	if err != nil {
		return nil, err
	}
	p, err := resource.FindPod(o.env, dirs, location.namespace, location.pod)
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan()
	if err != nil {
		return nil, err
	}
	ct, err := podclient.ChooseContainer(o.env.ErrOut, p, plan, o.container)
	if err != nil {
		return nil, err
	}
	return &copyJob{env: o.env, pod: p, req: wire.CopyRequest{Container: ct.Name, Path: location.path}}, nil
}

func (o *cpOptions) copyIn(ctx context.Context) error {
	from := o.from.path
	x, err := o.newJob(o.to)
	if err != nil {
		return err
	}
	x.req.In, x.req.Plain = true, o.plain
	if from == "-" {
		x.req.Tar, x.req.Owners = true, !x.req.Plain
		return x.run(ctx, func(_ context.Context, stream *os.File) error {
			_, err := io.Copy(stream, o.env.In)
			return err
		})
	}
	found, err := filepath.EvalSymlinks(from)
	if err != nil {
		return fmt.Errorf("cannot copy %s: %w", from, treetar.PathErrorReason(err))
	}
	st, err := os.Stat(found)
	if err != nil {
		return fmt.Errorf("cannot copy %s: %w", from, treetar.PathErrorReason(err))
	}
	dir, name := found, "."
	if !st.IsDir() {
		dir, name = filepath.Dir(found), filepath.Base(found)
	}
	root, err := treetar.OpenForeign(dir)
	if err != nil {
		return fmt.Errorf("cannot copy %s: %w", from, treetar.PathErrorReason(err))
	}
	defer root.Close()
	return x.run(ctx, func(ctx context.Context, stream *os.File) error {
		return root.Pack(ctx, stream, name, copyName(from), x.skipped)
	})
}

func (o *cpOptions) copyOut(ctx context.Context) error {
	to := o.to.path
	x, err := o.newJob(o.from)
	if err != nil {
		return err
	}
	x.req.As = copyName(o.from.path)
	if to == "-" {
		return x.run(ctx, func(_ context.Context, stream *os.File) error {
			_, err := io.Copy(o.env.Out, stream)
			return err
		})
	}
	dir, name := to, "."
	if st, err := os.Stat(to); err != nil || !st.IsDir() {
		if strings.HasSuffix(to, "/") {
			return report.New(report.Failure, "create it first: mkdir -p "+to, "%s is not a directory", to)
		}
		dir, name = filepath.Dir(to), filepath.Base(to)
	}
	root, err := treetar.OpenOwn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return report.New(report.Failure, "create it first: mkdir -p "+dir, "cannot copy to %s: directory %s does not exist", to, dir)
	}
	if err != nil {
		return fmt.Errorf("cannot copy to %s: %w", to, treetar.PathErrorReason(err))
	}
	defer root.Close()
	return x.run(ctx, func(ctx context.Context, stream *os.File) error {
		return root.Unpack(ctx, stream, name, false, treetar.Options{Skipped: x.skipped})
	})
}

// copyName returns the name of a source at its destination; "." for the contents of a directory.
func copyName(source string) string {
	if source == "." || source == "/" || strings.HasSuffix(source, "/.") {
		return "."
	}
	base := path.Base(source)
	if base == ".." {
		return "."
	}
	return base
}

func (x *copyJob) skipped(text string) {
	fmt.Fprintf(x.env.ErrOut, "podrun: skipped %s\n", report.Escape(text))
}

// run requests the copy and calls local, which reads or writes the stream on this side.
func (x *copyJob) run(ctx context.Context, local func(context.Context, *os.File) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	killed, stop := x.passSignals(cancel)
	defer stop()
	skipped, err := podclient.Copy(ctx, x.pod, &x.req, local)
	select {
	case sig := <-killed:
		return exitcode.Interrupted(sig)
	default:
	}
	for _, text := range skipped {
		x.skipped(text)
	}
	return err
}

// passSignals makes a signal end the copy, so that no partial file stays here.
func (x *copyJob) passSignals(cancel func()) (killed <-chan os.Signal, stop func()) {
	arrived, stop := x.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	last := make(chan os.Signal, 1)
	go func() {
		if sig, ok := <-arrived; ok {
			last <- sig
			cancel()
		}
	}()
	return last, stop
}
