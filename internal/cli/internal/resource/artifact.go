package resource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// In the place of a FILE oci://REFERENCE is an artifact with manifests in a registry, oci:DIRECTORY[:NAME] one in an OCI
// layout. The image program fetches it as it fetches an image, with the same policy, mirrors and logins, and the image
// store keeps it.

// maxArtifactFiles is the maximum number of an artifact's files; together they may have api.MaxArtifact bytes.
const maxArtifactFiles = 10_000

// IsArtifact reports whether a file is an artifact.
func IsArtifact(file string) bool { return strings.HasPrefix(file, "oci:") }

// Artifact is what a manifest of an artifact says about its source.
type Artifact struct {
	Digest      string            // sha256:<hex> of the artifact's manifest
	Annotations map[string]string // of the artifact's manifest
}

// artifact is an artifact whose files are in a directory of its own, until remove.
type artifact struct {
	Artifact
	file  string // as the user names it
	top   string // the directory
	files []string

	kustomization string // its directory; "": the files are manifests

	lock *store.FileLock // of makeArtifactDir
}

// remove removes the files.
func (a *artifact) remove() {
	os.RemoveAll(filepath.Dir(a.top))
	a.lock.Close()
}

// artifactDirs begins the names of the directories for the files of artifacts.
const artifactDirs = "artifact-"

// makeArtifactDir makes a directory for the files of an artifact. It returns a lock that whoever uses such a directory holds
// shared: if nobody does, killed commands have left the directories, and they are removed.
func makeArtifactDir(runtime string) (dir string, lock *store.FileLock, err error) {
	if err := os.MkdirAll(runtime, 0o700); err != nil {
		return "", nil, err
	}
	if lock, err = store.OpenFileLock(filepath.Join(runtime, "artifacts.lock")); err != nil {
		return "", nil, err
	}
	alone, err := lock.TryExclusive()
	if err == nil && alone {
		err = removeAll(filepath.Join(runtime, artifactDirs+"*"))
	}
	if err == nil {
		err = lock.Shared()
	}
	if err == nil {
		dir, err = os.MkdirTemp(runtime, artifactDirs)
	}
	if err != nil {
		lock.Close()
	}
	return dir, lock, err
}

func removeAll(pattern string) error {
	found, err := filepath.Glob(pattern)
	for _, path := range found {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// name returns the name of one of its files for messages.
func (a *artifact) name(file string) string {
	if rest, ok := strings.CutPrefix(file, a.top); ok {
		return a.file + rest
	}
	return file
}

// renamed is an error that names the files of an artifact as name does.
type renamed struct {
	error
	of *artifact
}

func (e renamed) Error() string { return strings.ReplaceAll(e.error.Error(), e.of.top, e.of.file) }
func (e renamed) Unwrap() error { return e.error }

// openArtifact fetches an artifact, and finds its manifests.
func openArtifact(env *cmdutil.Env, file string) (*artifact, error) {
	images, err := env.ImageStore()
	if err != nil {
		return nil, err
	}
	img, err := fetchArtifact(env, images, file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests %s: %w", file, err)
	}
	dirs, err := env.Dirs()
	if err != nil {
		return nil, err
	}
	above, lock, err := makeArtifactDir(dirs.Runtime)
	if err != nil {
		return nil, fmt.Errorf("make a directory for the files of %s: %w", file, err)
	}
	a := &artifact{file: file, top: filepath.Join(above, artifactName(file)), lock: lock}
	a.Digest = img.Digest
	written, err := copyFiles(img.Layers, a.top)
	if err == nil {
		a.Annotations, err = annotationsOf(images, img)
	}
	if err == nil {
		err = a.find(env.ArtifactPath, written, img.Artifact)
	}
	if err != nil {
		a.remove()
		return nil, fmt.Errorf("cannot read the manifests %s: %w", file, err)
	}
	return a, nil
}

// packedAnnotation is "true" for a directory that oras has packed into one layer (oras.land/oras-go: content/file/file.go).
const packedAnnotation = "io.deis.oras.content.unpack"

// annotationsOf returns the annotations of an artifact; none if the store has them of another artifact with the same files
// only. A layer whose manifests podrun would not see is an error.
func annotationsOf(s *image.Store, img pod.Image) (map[string]string, error) {
	annotations, layers, err := s.Annotations(img)
	for _, l := range layers {
		if l[packedAnnotation] == "true" {
			return nil, report.New(report.Usage, "name its files in oras push, or use podrun image push",
				"%s is a directory that oras has packed", l[image.AnnotationTitle])
		}
	}
	return annotations, err
}

// artifactName returns the last part of an artifact's repository or directory: a compose project without a name has it.
func artifactName(file string) string {
	name := path.Base(strings.TrimRight(file, "/"))
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	if name == "" || name == "." || name == ".." {
		return "artifact"
	}
	return name
}

// SetName returns the name of the set that has a source: the given one or, if it is "", the last part of the source's
// repository or directory.
func SetName(given, source string) (string, error) {
	if given != "" {
		return given, CheckSetName(given)
	}
	source = strings.TrimPrefix(source, kustomizePrefix)
	if IsArtifact(source) {
		source = artifactName(source)
	} else if full, err := filepath.Abs(source); err == nil { // for "." and ".."
		source = full
	}
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	return name, CheckSetName(name)
}

// CheckSetName returns an error if a word cannot be the name of a set.
func CheckSetName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return report.New(report.Usage, "--name NAME names the set", "%q cannot be the name of a set: %s", name, problems[0])
	}
	return nil
}

// fetchArtifact fetches an artifact into the image store. One that is named by its digest is not fetched again.
func fetchArtifact(env *cmdutil.Env, s *image.Store, file string) (img pod.Image, err error) {
	var location api.Location
	if name, ok := strings.CutPrefix(file, "oci://"); ok {
		if strings.Contains(name, "@") {
			if stored, err := s.Resolve(name); err == nil {
				return stored, checkArtifact(stored, name)
			}
		}
		location = api.Location{Transport: "docker", Path: name}
	} else if location, err = image.ParseLocation(file); err != nil {
		return img, err
	}
	options := env.Pull
	shown := progress.New(env, "fetching")
	options.Progress = shown.Update
	shown.Wait("fetching %s", file)
	signals, stop := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var images []pod.Image
	err = cmdutil.Interruptible(context.Background(), signals, func(ctx context.Context) error {
		images, err = s.Fetch(ctx, location, options)
		return err
	})
	shown.End()
	switch {
	case err != nil:
		return img, err
	case len(images) != 1:
		return img, report.New(report.Usage, "name one: oci:DIRECTORY:NAME", "there are %d images in it", len(images))
	}
	return images[0], checkArtifact(images[0], location.Path)
}

// checkArtifact returns an error if an image is not an artifact.
func checkArtifact(img pod.Image, name string) error {
	if img.Artifact == "" {
		return report.New(report.Usage, "podrun run "+name+" runs it", "it is a container image, not an artifact with manifests")
	}
	return nil
}

// copyFiles writes the files of layers below a new directory, and returns their paths, in the order of the layers.
func copyFiles(layers []string, to string) (written []string, err error) {
	if err := os.Mkdir(to, 0o700); err != nil {
		return nil, err
	}
	left := int64(api.MaxArtifact)
	for _, layer := range layers {
		root, err := os.OpenRoot(layer)
		if err != nil {
			return nil, err
		}
		err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				return os.MkdirAll(filepath.Join(to, name), 0o700)
			case !entry.Type().IsRegular():
				return report.New(report.Usage, "", "%s is not a regular file: only files and directories are allowed", name)
			case len(written) == maxArtifactFiles:
				return report.New(report.Usage, "", "it has more than %d files", maxArtifactFiles)
			}
			n, err := copyFile(root, name, filepath.Join(to, name), left)
			left -= n
			written = append(written, name)
			return err
		})
		root.Close()
		if err != nil {
			return nil, err
		}
	}
	return written, nil
}

// copyFile copies a file of at most limit bytes, and returns its size.
func copyFile(root *os.Root, name, to string, limit int64) (int64, error) {
	in, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if n > limit {
		err = report.New(report.Usage, "", "its files have more than %d MiB", api.MaxArtifact>>20)
	}
	return n, errors.Join(err, out.Close())
}

// find sets the kustomization in the directory sub or, if there is none, the manifests there.
func (a *artifact) find(sub string, written []string, kind string) (err error) {
	if a.kustomization = a.findKustomization(sub, written); a.kustomization == "" {
		a.files, err = a.manifests(sub, written, kind)
	}
	return err
}

// manifests returns the paths of the manifests in the directory sub: of a compose project in the order of its layers,
// else as Flux reads them (kustomize-controller: generator.go), sorted.
func (a *artifact) manifests(sub string, written []string, kind string) ([]string, error) {
	if sub != "" && !fs.ValidPath(sub) {
		return nil, report.New(report.Usage, "", "--path %s is not a path in it", sub)
	}
	var found []string
	for _, name := range written {
		if sub != "" && sub != "." && !strings.HasPrefix(name, sub+"/") {
			continue
		}
		if slices.Contains(kustomizations, path.Base(name)) {
			return nil, report.New(report.Usage, "--path "+path.Dir(name)+" applies it; --path chooses one directory",
				"%s is a kustomization among other manifests", name)
		}
		if IsManifestName(name) {
			found = append(found, filepath.Join(a.top, name))
		}
	}
	if len(found) == 0 {
		return nil, report.New(report.Usage, "", "there are no manifests in %s: no file ends in .yaml, .yml or .json", strings.TrimSuffix(a.file+"/"+sub, "/"))
	}
	if kind != api.ComposeArtifact && kind != api.ComposeArtifactV10 {
		slices.Sort(found)
	}
	return found, nil
}
