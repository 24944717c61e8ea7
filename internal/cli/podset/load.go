package podset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// manifests are the manifests of a version, as its file has them.
type manifests struct {
	Files []manifestFile `json:"files"`
}

// manifestFile is one file of a version.
type manifestFile struct {
	Name      string `json:"name"` // for messages
	Text      string `json:"text"`
	Namespace string `json:"namespace,omitempty"` // of its objects that set none
}

// documents decodes the manifests.
func (m *manifests) documents() (resource.Documents, error) {
	var sources []resource.Source
	for _, f := range m.Files {
		sources = append(sources, resource.Source{Name: f.Name, Data: []byte(f.Text), Namespace: f.Namespace})
	}
	return resource.Load(sources)
}

// version is a version of a set with its manifests.
type version struct {
	*store.SetVersion
	text []byte
	docs resource.Documents
}

// newVersion returns a version with its manifests, without their documents. Its ID is the digest of the manifests and of the
// ids of its images.
func newVersion(v *store.SetVersion, m manifests) (*version, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the manifests: %w", err)
	}
	sum := sha256.New()
	sum.Write(text)
	if v.Pins != nil {
		if err := json.NewEncoder(sum).Encode(v.Pins); err != nil {
			return nil, fmt.Errorf("encode the images: %w", err)
		}
	}
	v.ID = hex.EncodeToString(sum.Sum(nil))
	return &version{SetVersion: v, text: text}, nil
}

// readVersion reads a recorded version.
func readVersion(dirs store.Dirs, name string, v *store.SetVersion) (*version, error) {
	text, err := dirs.SetManifests(name, v.ID)
	if err != nil {
		return nil, err
	}
	var m manifests
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the manifests of set %s: %w", name, err)
	}
	docs, err := m.documents()
	if err != nil {
		return nil, err
	}
	return &version{v, text, docs}, nil
}

// source is what the user has named, as read.
type source struct {
	Found
	files []resource.Source
	notes map[string]string // annotations of the artifact
}

// read reads the manifests of the source.
func (t *Transaction) read() (*source, error) {
	files, err := resource.ReadFiles(t.env, t.Files)
	if err != nil {
		return nil, err
	}
	s := &source{files: files}
	for _, f := range files {
		compose.Warn(t.env, f.Warnings)
	}
	if s.Inputs, err = t.inputs(); err != nil {
		return nil, err
	}
	s.Fetched = true
	if a := files[0].Artifact; a != nil && len(t.Files) == 1 {
		s.Digest, s.Signed, s.notes = a.Digest, true, a.Annotations
		s.Created, _ = time.Parse(time.RFC3339, a.Annotations[image.AnnotationCreated]) // zero if it has none
		return s, nil
	}
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%q %q\n", f.Name, f.Data)
	}
	s.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// inputs returns the digest of what the machine adds to the source.
func (t *Transaction) inputs() (string, error) {
	vars, err := resource.Variables(t.env)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(vars)
	if err != nil {
		return "", fmt.Errorf("encode the variables: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", t.env.ArtifactPath, t.env.NamespaceFlag, text))
	return hex.EncodeToString(sum[:]), nil
}

// resolve fetches the images of the source, and returns its version, in which every image has a digest. The images stay
// until release.
func (t *Transaction) resolve(ctx context.Context, s *source) (v *version, release func(), err error) {
	docs, err := resource.Load(s.files)
	if err != nil {
		return nil, nil, err
	}
	if err := resource.RefuseGenerated(docs, "a set"); err != nil {
		return nil, nil, err
	}
	next := &store.SetVersion{
		Digest: s.Digest, Inputs: s.Inputs, Created: s.Created,
		Revision: s.notes[image.AnnotationRevision], Version: s.notes[image.AnnotationVersion],
		Policy: t.env.Policy, UnsafeSysctls: t.UnsafeSysctls, RequireLimits: t.RequireLimits,
	}
	run, err := podup.New(ctx, t.env, nil, docs, t.options(next))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			run.Release()
		}
	}()
	found, err := run.Ensure(ctx)
	if err != nil {
		return nil, nil, err
	}
	digests, err := pinAll(t.images, found)
	if err != nil {
		return nil, nil, err
	}
	var m manifests
	for _, f := range s.files {
		text, err := manifest.PinImages(f.Name, f.Data, func(reference string) (string, error) {
			if by, ok := digests[reference]; ok {
				return by, nil
			}
			return reference, nil // of an object without effect here
		})
		if err != nil {
			return nil, nil, err
		}
		m.Files = append(m.Files, manifestFile{Name: f.Name, Text: string(text), Namespace: f.Namespace})
	}
	if v, err = newVersion(next, m); err != nil {
		return nil, nil, err
	}
	for _, img := range found {
		if !slices.Contains(v.Images, img.ID) {
			v.Images = append(v.Images, img.ID)
		}
	}
	slices.Sort(v.Images)
	v.docs, err = m.documents()
	return v, run.Release, err
}

// pinAll returns a name with a digest for each reference.
func pinAll(images *image.Store, found map[pull.Request]pod.Image) (map[string]string, error) {
	digests := map[string]string{}
	for request, img := range found {
		by, err := images.Pin(request.Ref, img)
		if err != nil {
			return nil, err
		}
		if other, ok := digests[request.Ref]; ok && other != by {
			return nil, report.New(report.Failure, "give the image one imagePullPolicy in all manifests", "image %s is two images: %s and %s", request.Ref, other, by)
		}
		digests[request.Ref] = by
	}
	return digests, nil
}

// remoteDigest returns the digest of an artifact in its registry, and false if the source is not in a registry, or the
// registry does not tell.
func (t *Transaction) remoteDigest(ctx context.Context) (digest string, ok bool, err error) {
	name, is := strings.CutPrefix(t.Files[0], "oci://")
	if !is || len(t.Files) != 1 {
		return "", false, nil
	}
	var img pod.Image
	if _, pinned, is := strings.Cut(name, "@"); is {
		digest = pinned
		img, _ = t.images.Resolve(name)
	} else if digest, img, err = t.images.Head(ctx, name, t.env.Pull); err != nil {
		if image.IsTransient(err) {
			return "", false, err
		}
		return "", false, nil // not every registry answers HEAD
	}
	if img.ID != "" {
		digest = img.Digest // of the artifact, if the name stands for an index
	}
	return digest, true, nil
}

// options returns the options of a run of a version: it is admitted as it was when it was new.
func (t *Transaction) options(v *store.SetVersion) podup.Options {
	return podup.Options{Replace: true, RequireLimits: v.RequireLimits, Policy: v.Policy, UnsafeSysctls: v.UnsafeSysctls, Pull: t.env.Pull}
}

// sourceName returns the source as the user has named it.
func (t *Transaction) sourceName() string {
	if len(t.Files) == 0 {
		return t.record.Source
	}
	return strings.Join(t.Files, " ")
}
