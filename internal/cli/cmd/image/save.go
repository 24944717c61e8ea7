package image

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

func imageSaveCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "save",
		Usage:     "write images to an archive",
		ArgsUsage: "IMAGE...",
		Description: `Writes images into one archive for podrun image load, podman, docker and skopeo:
oci-archive and docker-archive are one tar file, oci-dir is a directory to which
later saves add. Images share layers there too. The same images give the same
bytes. Damaged images are not saved. Without -o the archive goes to standard
output.

Examples:
  podrun image save -o web.tar web:1.4
  podrun image save --compress zstd -o all.tar web:1.4 db:16
  podrun image save --format oci-dir -o /media/stick/images web:1.4
  podrun image save web:1.4 | ssh board podrun image load -
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to this `FILE`"},
			&cli.StringFlag{Name: "format", Value: image.OCIArchive, Usage: "the archive's `FORMAT`: oci-archive, docker-archive or oci-dir"},
			&cli.StringFlag{Name: "compress", Usage: "compress the layers, by `METHOD`: gzip or zstd"},
		},
		Action: func(c *cli.Context) error { return runSave(env, c) },
	}
}

func runSave(env *cmdutil.Env, c *cli.Context) error {
	o := image.SaveOptions{Format: c.String("format"), Compress: c.String("compress")}
	out := c.String("output")
	switch {
	case !c.Args().Present():
		return cmdutil.UsageErrorf("image save", "image save requires the names of images")
	case !slices.Contains([]string{image.OCIArchive, image.OCIDir, image.DockerArchive}, o.Format):
		return cmdutil.UsageErrorf("image save", "--format must be oci-archive, docker-archive or oci-dir, not %q", o.Format)
	case !slices.Contains([]string{"", "gzip", "zstd"}, o.Compress):
		return cmdutil.UsageErrorf("image save", "--compress must be gzip or zstd, not %q", o.Compress)
	case o.Format == image.OCIDir && (out == "" || out == "-"):
		return cmdutil.UsageErrorf("image save", "--format oci-dir requires -o and a directory")
	}
	if out == "-" {
		out = ""
	}
	if _, terminal := tty.File(env.Out); out == "" && terminal {
		return cmdutil.UsageErrorf("image save", "cannot write an archive to a terminal: use -o FILE")
	}
	s, err := env.ImageStore()
	if err != nil {
		return err
	}
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	shown := progress.New(env, "saving")
	o.Progress = shown.Update
	shown.Wait("saving %s", strings.Join(c.Args().Slice(), ", "))
	return cmdutil.Interruptible(c.Context, signals, func(ctx context.Context) error {
		defer shown.End()
		save := func(to image.Target) error { return s.Save(ctx, c.Args().Slice(), to, o) }
		switch {
		case o.Format == image.OCIDir:
			return save(image.Target{Dir: out})
		case out == "":
			w := bufio.NewWriterSize(env.Out, 256<<10)
			if err := save(image.Target{Out: w, Scratch: os.TempDir()}); err != nil {
				return err
			}
			return w.Flush()
		}
		return writeAtomically(out, func(w io.Writer) error { return save(image.Target{Out: w, Scratch: filepath.Dir(out)}) })
	})
}

// writeAtomically writes a file durably and completely, or not at all.
func writeAtomically(path string, write func(io.Writer) error) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return report.New(report.Usage, "--format oci-dir writes into a directory", "%s is a directory", path)
		}
		file, err := os.OpenFile(path, os.O_WRONLY, 0) // a device or a pipe
		if err != nil {
			return err
		}
		defer file.Close()
		return write(file)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".podrun-*")
	if err != nil {
		return fmt.Errorf("save to %s: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // fails once renamed
	err = write(tmp)
	for _, do := range []func() error{tmp.Sync, tmp.Close} {
		if derr := do(); err == nil && derr != nil {
			err = fmt.Errorf("save to %s: %w", path, derr)
		}
	}
	if err != nil {
		return err
	}
	os.Chmod(tmp.Name(), 0o644) // may fail: the file system of a USB stick may have no modes
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("save to %s: %w", path, err)
	}
	return store.SyncDir(filepath.Dir(path))
}
