// Package imagebuild builds images with another program, and loads them into the image store: podrun builds none itself.
package imagebuild

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// BuildChanged builds the images that are missing, and the images that podrun has built from other inputs. An image of
// that name that the user has loaded or pulled is used as it is, as with docker compose.
func BuildChanged(ctx context.Context, env *cmdutil.Env, builds []api.Build, o cmdutil.BuildOptions) error {
	if len(builds) == 0 || o.Never {
		return nil
	}
	builds, err := compose.Inputs(env, builds)
	if err != nil {
		return err
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	images, err := env.ImageStore()
	if err != nil {
		return err
	}
	built := map[string]string{} // inputs by image: several services may have one
	for _, b := range builds {
		if b.Problem != "" {
			return report.New(report.Usage, "", "cannot build the image of service %s: %s", b.Service, b.Problem)
		}
		name := image.NormalizeName(b.Image)
		if built[name] == b.Inputs {
			continue
		}
		img, missing := images.Resolve(b.Image) // a damaged image is built again, too
		last, err := readRecord(dirs, name)
		if err != nil {
			return err
		}
		changed := last.ID == img.ID && last.Inputs != "" && last.Inputs != b.Inputs
		if missing == nil && !changed && !b.Always && !o.Force {
			continue
		}
		if err := Build(ctx, env, b, o); err != nil {
			return err
		}
		built[name] = b.Inputs
	}
	return nil
}

// Build builds an image, loads it into the image store, and records its inputs.
func Build(ctx context.Context, env *cmdutil.Env, b api.Build, o cmdutil.BuildOptions) error {
	with, err := find(o.Builder)
	if err != nil {
		return err
	}
	b.NoCache = b.NoCache || o.NoCache
	b.Image = image.NormalizeName(b.Image)
	dir, err := os.MkdirTemp(cmp.Or(env.Getenv("TMPDIR"), "/var/tmp"), "podrun-build-") // an image may not fit into a /tmp in memory
	if err != nil {
		return fmt.Errorf("build image %s: %w", b.Image, err)
	}
	defer os.RemoveAll(dir)
	archive := filepath.Join(dir, "image.tar")
	if b.Inline != "" {
		b.Dockerfile = filepath.Join(dir, "Dockerfile")
		if err := os.WriteFile(b.Dockerfile, []byte(b.Inline), 0o600); err != nil {
			return fmt.Errorf("build image %s: %w", b.Image, err)
		}
	}
	fmt.Fprintf(env.ErrOut, "podrun: building %s with %s\n", report.Escape(b.Image), with.name)
	for _, words := range with.commands(b, archive) {
		if err := run(ctx, env, with, words); err != nil {
			return report.New(report.Failure, "", "cannot build image %s: %w", b.Image, err)
		}
	}
	images, err := env.ImageStore()
	if err != nil {
		return err
	}
	img, err := load(ctx, env, images, b.Image, archive)
	if err != nil {
		return err
	}
	for _, name := range b.Tags {
		if err := images.Tag(img.ID, image.NormalizeName(name)); err != nil {
			return fmt.Errorf("tag image %s: %w", b.Image, err)
		}
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	return writeRecord(dirs, b.Image, record{Image: b.Image, ID: img.ID, Inputs: b.Inputs})
}

// load adds the image of an archive to the store.
func load(ctx context.Context, env *cmdutil.Env, images *image.Store, name, archive string) (pod.Image, error) {
	shown := progress.New(env, "loading")
	shown.Wait("loading %s", name)
	list, err := images.LoadAll(ctx, archive, shown.Update)
	shown.End()
	if err != nil {
		return pod.Image{}, err
	}
	for _, img := range list {
		if img.Name == name {
			return img, nil
		}
	}
	var names []string
	for _, img := range list {
		names = append(names, cmp.Or(img.Name, img.ID))
	}
	return pod.Image{}, report.New(report.Failure, "", "the builder has not made %s: it has made %s", name, strings.Join(names, ", "))
}

// record is what is known of the last build of an image.
type record struct {
	Image  string `json:"image"`
	ID     string `json:"id"`     // sha256:<hex> of the image's config
	Inputs string `json:"inputs"` // "": podrun build has built it
}

func recordFile(dirs store.Dirs, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(dirs.Data, "builds", hex.EncodeToString(sum[:16])+".json")
}

// readRecord returns the record of an image, empty if podrun has not built it.
func readRecord(dirs store.Dirs, name string) (r record, err error) {
	text, err := os.ReadFile(recordFile(dirs, name))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read what image %s was built from: %w", name, err)
	}
	return r, nil
}

func writeRecord(dirs store.Dirs, name string, r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := recordFile(dirs, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("record what image %s was built from: %w", name, err)
	}
	return store.WriteFile(path, text)
}
