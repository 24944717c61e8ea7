package image

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/report"
)

// pinFiles returns the manifests of a directory in which references have no digests, with the digests that the registries
// have. A reference is looked up once, so that it stands for one image in all of them.
func pinFiles(ctx context.Context, s *image.Store, dir string, o image.PullOptions) (map[string][]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("push %s: %w", dir, err)
	}
	defer root.Close()
	pinned := map[string]string{}
	pin := func(reference string) (text string, err error) {
		text, ok := pinned[reference]
		if !ok {
			text, err = pinReference(ctx, s, reference, o)
			pinned[reference] = text
		}
		return text, err
	}
	changed := map[string][]byte{}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case !entry.Type().IsRegular() || !resource.IsManifestName(name):
			return nil
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		text, err := manifest.PinImages(name, data, pin)
		if err == nil && !bytes.Equal(text, data) {
			changed[name] = text
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pin the images of %s: %w", dir, err)
	}
	return changed, nil
}

// pinReference returns a reference with the digest for which it stands in its registry now.
func pinReference(ctx context.Context, s *image.Store, reference string, o image.PullOptions) (string, error) {
	switch {
	case image.IsPinned(reference):
		return reference, nil
	case strings.Contains(reference, "$"):
		return "", report.New(report.Usage, "write the name without variables", "it has a variable, and so no digest yet")
	case strings.HasPrefix(image.NormalizeName(reference), "localhost/"):
		return "", report.New(report.Usage, "push it to a registry, and use its name there", "it is a name of this machine only")
	}
	digest, _, err := s.Head(ctx, reference, o)
	return reference + "@" + digest, err
}
