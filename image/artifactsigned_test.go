package image

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/cosigntest"
)

// fluxSet returns an artifact with manifests, as Flux makes it.
func fluxSet(t *testing.T, name string) img {
	return img{Name: name, Layers: [][]byte{gzipped(t, layerTar(t, f{Name: "pod.yaml", Content: "kind: Pod"}))}, Edit: func(_ *v1.Image, m *v1.Manifest) {
		m.Config = v1.DescriptorEmptyJSON
		m.Config.MediaType, m.Layers[0].MediaType = api.FluxArtifact, api.FluxContent
	}}
}

// TestPolicyArtifacts pulls an artifact with manifests that is signed as by cosign 2 and cosign 3.
func TestPolicyArtifacts(t *testing.T) {
	trusted, other := newKey(t), newKey(t)
	l := newLayout(t).add(fluxSet(t, ""))
	set := l.index.Manifests[0].Digest
	cosign2 := func(key *ecdsa.PrivateKey) func(*fake, string) {
		return func(fk *fake, repo string) { sign(t, fk, set, repo+":latest", key) }
	}
	cosign3 := func(key *ecdsa.PrivateKey) func(*fake, string) {
		return func(fk *fake, _ string) {
			refer(t, fk, "referrers/"+set.String(), set, signedBundle(t, set, cosigntest.SignPredicate, key))
		}
	}
	for name, tt := range map[string]struct {
		sign func(fk *fake, repo string)
		want string
	}{
		"cosign 2":            {cosign2(trusted), ""},
		"cosign 2, other key": {cosign2(other), "ignature"},
		"cosign 3":            {cosign3(trusted), ""},
		"cosign 3, other key": {cosign3(other), "no signature by a key of the policy"},
		"not signed":          {func(*fake, string) {}, "A signature was required, but no signature exists"},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, l)
			tt.sign(fk, repo)
			s := newStore(t)
			s.Config.RegistriesDirPath = sigstoreAttachments(t)
			policied(t, s, fmt.Sprintf(`{"default":%s,"transports":{"docker":{%q:[{"type":"sigstoreSigned","keyPath":%q}]}}}`, reject, repo, publicKey(t, trusted)))
			checkSigned(t, s, repo, tt.want)
		})
	}
}

// attach copies the manifest at a path of a registry into the layout, with its blobs.
func (l *layoutDir) attach(fk *fake, path string, annotations map[string]string) {
	l.t.Helper()
	for name, b := range fk.blobs {
		if strings.HasPrefix(name, "blobs/") {
			l.blob("", b)
		}
	}
	d := l.blob(v1.MediaTypeImageManifest, fk.blobs[path])
	d.Annotations = annotations
	l.index.Manifests = append(l.index.Manifests, d)
}

// TestPolicyLayouts fetches an artifact from an OCI layout in which its signatures are, too.
func TestPolicyLayouts(t *testing.T) {
	const repository = "registry.example/team/set"
	trusted, other := newKey(t), newKey(t)
	exact := `{"type":"exactRepository","dockerRepository":"` + repository + `"}`
	kind := map[string]string{"kind": "dev.cosignproject.cosign/sigs"}
	cosign2 := func(key *ecdsa.PrivateKey, of func(set digest.Digest) digest.Digest, annotations map[string]string) func(*layoutDir, digest.Digest) {
		return func(l *layoutDir, set digest.Digest) {
			fk := &fake{blobs: map[string][]byte{}, types: map[string]string{}}
			sign(t, fk, of(set), repository, key)
			tag := "sha256-" + of(set).Encoded() + ".sig"
			if annotations == nil {
				annotations = map[string]string{v1.AnnotationRefName: tag}
			}
			l.attach(fk, "manifests/"+tag, annotations)
		}
	}
	cosign3 := func(key *ecdsa.PrivateKey, of func(set digest.Digest) digest.Digest) func(*layoutDir, digest.Digest) {
		return func(l *layoutDir, set digest.Digest) {
			fk := &fake{blobs: map[string][]byte{}, types: map[string]string{}}
			refer(t, fk, "list", set, signedBundle(t, of(set), cosigntest.SignPredicate, key))
			for path, b := range fk.blobs {
				if strings.HasPrefix(path, "manifests/") && strings.Contains(string(b), `"subject"`) {
					l.attach(fk, path, nil)
				}
			}
		}
	}
	this := func(set digest.Digest) digest.Digest { return set }
	another := func(digest.Digest) digest.Digest { return digest.FromString("y") }
	for name, tt := range map[string]struct {
		sign           func(*layoutDir, digest.Digest)
		identity, want string
	}{
		"cosign 2":                        {cosign2(trusted, this, nil), exact, ""},
		"cosign 2, as cosign save writes": {cosign2(trusted, this, kind), exact, ""},
		"cosign 2, other key":             {cosign2(other, this, nil), exact, "ignature"},
		"cosign 2, other image":           {cosign2(trusted, another, nil), exact, "no signature exists"},
		"cosign 2, other image, saved":    {cosign2(trusted, another, kind), exact, "digest"},
		"cosign 2, other repository":      {cosign2(trusted, this, nil), `{"type":"exactRepository","dockerRepository":"registry.example/x"}`, repository},
		"cosign 2, no repository":         {cosign2(trusted, this, nil), `{"type":"matchRepository"}`, `identity "` + repository + `" is not accepted`},
		"cosign 2, remapped":              {cosign2(trusted, this, nil), `{"type":"remapIdentity","prefix":"a.example","signedPrefix":"registry.example"}`, `identity "` + repository + `" is not accepted`},
		"cosign 3":                        {cosign3(trusted, this), `{"type":"matchRepository"}`, ""},
		"cosign 3, default identity":      {cosign3(trusted, this), `{"type":"matchRepoDigestOrExact"}`, ""},
		"cosign 3, other key":             {cosign3(other, this), `{"type":"matchRepository"}`, "no signature by a key of the policy"},
		"cosign 3, other image":           {cosign3(trusted, another), `{"type":"matchRepository"}`, "signs another digest"},
		"cosign 3, a name is needed":      {cosign3(trusted, this), exact, "signedIdentity exactRepository"},
		"not signed":                      {func(*layoutDir, digest.Digest) {}, exact, "no signature exists"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t).add(fluxSet(t, "set"))
			tt.sign(l, l.index.Manifests[0].Digest)
			for transport, path := range map[string]string{api.OCILayout: l.path(), api.OCIArchive: tarFile(t, l.path(), nil)} {
				for _, imageName := range []string{"", "set"} {
					s := newStore(t)
					policied(t, s, fmt.Sprintf(`{"default":%s,"transports":{%q:{%q:[{"type":"sigstoreSigned","keyPath":%q,"signedIdentity":%s}]}}}`,
						reject, transport, filepath.Dir(path), publicKey(t, trusted), tt.identity))
					images, err := s.Fetch(context.Background(), api.Location{Transport: transport, Path: path, Name: imageName}, api.PullOptions{})
					if tt.want == "" {
						if err != nil || len(images) != 1 || images[0].Artifact != api.FluxArtifact {
							t.Errorf("%s, %q: %+v, %v", transport, imageName, images, err)
						}
						continue
					}
					wantError(t, err, tt.want)
					if left := content(t, s); api.Reason(err) != api.SignatureValidationFailed || len(left) > 0 {
						t.Errorf("%s, %q: reason %q, left in the store: %v", transport, imageName, api.Reason(err), left)
					}
				}
			}
		})
	}
}
