package image

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/cosigntest"
)

// signedBundle returns a sigstore bundle with a statement about an image, as cosign 3 writes it.
func signedBundle(t *testing.T, image digest.Digest, predicate string, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	text, err := cosigntest.Bundle(image.Encoded(), predicate, key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// refer adds an artifact with a bundle to the registry, which refers to an image.
func refer(t *testing.T, fk *fake, list string, image digest.Digest, bundle []byte) {
	t.Helper()
	add := func(mediaType string, b []byte) v1.Descriptor {
		d := digest.FromBytes(b)
		fk.blobs["blobs/"+d.String()], fk.blobs["manifests/"+d.String()], fk.types["manifests/"+d.String()] = b, b, mediaType
		return v1.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(b))}
	}
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	manifest := add(v1.MediaTypeImageManifest, encode(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, ArtifactType: cosigntest.BundleType,
		Config: add(v1.MediaTypeEmptyJSON, []byte(`{}`)), Layers: []v1.Descriptor{add(cosigntest.BundleType, bundle)},
		Subject: &v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: image, Size: 1},
	}))
	manifest.ArtifactType = cosigntest.BundleType
	fk.blobs[list] = encode(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{manifest}})
	fk.types[list] = v1.MediaTypeImageIndex
}

// publicKey writes the public part of a key to a file.
func publicKey(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPolicyBundles pulls images that are signed by sigstore bundles.
func TestPolicyBundles(t *testing.T) {
	keys := []*ecdsa.PrivateKey{newKey(t), newKey(t)}
	trusted := publicKey(t, keys[0])
	rekor := publicKey(t, keys[1])
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	image := l.index.Manifests[0].Digest
	byAPI, tag := "referrers/"+image.String(), "manifests/sha256-"+image.Encoded()
	for name, tt := range map[string]struct {
		list   string
		bundle []byte
		fields string // of the requirement
		want   string
	}{
		"signed":            {byAPI, signedBundle(t, image, cosigntest.SignPredicate, keys[0]), "", ""},
		"no referrers API":  {tag, signedBundle(t, image, cosigntest.SignPredicate, keys[0]), "", ""},
		"for a repository":  {byAPI, signedBundle(t, image, cosigntest.SignPredicate, keys[0]), `,"signedIdentity":{"type":"matchRepository"}`, ""},
		"other key":         {byAPI, signedBundle(t, image, cosigntest.SignPredicate, keys[1]), "", "no signature by a key of the policy"},
		"other image":       {byAPI, signedBundle(t, digest.FromString("y"), cosigntest.SignPredicate, keys[0]), "", "signs another digest"},
		"other statement":   {byAPI, signedBundle(t, image, "https://slsa.dev/provenance/v1", keys[0]), "", "no signature of an image but a statement of type https://slsa.dev/provenance/v1"},
		"rubbish":           {byAPI, []byte("{"), "", "read bundle"},
		"of another kind":   {byAPI, []byte(`{"messageSignature":{}}`), "", "no in-toto statement"},
		"a name is needed":  {byAPI, signedBundle(t, image, cosigntest.SignPredicate, keys[0]), `,"signedIdentity":{"type":"matchExact"}`, "signedIdentity matchExact"},
		"a log is needed":   {byAPI, signedBundle(t, image, cosigntest.SignPredicate, keys[0]), fmt.Sprintf(`,"rekorPublicKeyPath":%q`, rekor), "entry in a log"},
		"and it is refused": {byAPI, signedBundle(t, image, cosigntest.SignPredicate, keys[0]), `},{"type":"reject"`, "rejected by policy"},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, l)
			refer(t, fk, tt.list, image, tt.bundle)
			s := newStore(t)
			policied(t, s, fmt.Sprintf(`{"default":%s,"transports":{"docker":{"":[{"type":"sigstoreSigned","keyPath":%q%s}]}}}`, reject, trusted, tt.fields))
			checkSigned(t, s, repo, tt.want)
		})
	}
}

// TestPolicyFIFO: a policy, or a key, that is a FIFO without a writer is an error at once.
func TestPolicyFIFO(t *testing.T) {
	_, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	s.File = func() (string, error) { return fifo, nil }
	_, err := s.Pull(context.Background(), repo, api.PullOptions{})
	wantError(t, err, "is not a regular file")
	for _, field := range []string{fmt.Sprintf(`"keyPath":%q`, fifo), fmt.Sprintf(`"keyPaths":[%q]`, fifo)} {
		policied(t, s, `{"default":[{"type":"sigstoreSigned",`+field+`}]}`)
		_, err = s.Pull(context.Background(), repo, api.PullOptions{})
		wantError(t, err, "is not a regular file")
	}
}

// TestPolicyCosign gets an image with the signatures that cosign has written (testdata/cosign), from a registry and from an
// OCI layout.
func TestPolicyCosign(t *testing.T) {
	const dir = "testdata/cosign"
	registriesd, other := sigstoreAttachments(t), newKey(t)
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var tags map[string]digest.Digest
	if err := json.Unmarshal(read("tags.json"), &tags); err != nil {
		t.Fatal(err)
	}
	image := "sha256-" + tags["latest"].Encoded()
	trusted := filepath.Join(dir, "cosign.pub")
	for name, tt := range map[string]struct{ without, key, identity, want string }{
		"version 2":            {image, trusted, `{"type":"exactRepository","dockerRepository":"registry.example/x"}`, ""},
		"version 2, other key": {image, publicKey(t, other), `{"type":"exactRepository","dockerRepository":"registry.example/x"}`, "ignature"},
		"version 3":            {image + ".sig", trusted, `{"type":"matchRepository"}`, ""},
		"version 3, other key": {image + ".sig", publicKey(t, other), `{"type":"matchRepository"}`, "no signature by a key of the policy"},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, newLayout(t).add(img{}))
			blobs, err := os.ReadDir(filepath.Join(dir, "blobs"))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range blobs {
				b := read("blobs/" + e.Name())
				var m struct {
					MediaType string `json:"mediaType"`
				}
				_ = json.Unmarshal(b, &m) // a layer is no JSON
				for _, kind := range []string{"blobs", "manifests"} {
					path := kind + "/sha256:" + e.Name()
					fk.blobs[path], fk.types[path] = b, m.MediaType
				}
			}
			for tag, d := range tags {
				if tag != tt.without {
					fk.blobs["manifests/"+tag], fk.types["manifests/"+tag] = fk.blobs["manifests/"+d.String()], fk.types["manifests/"+d.String()]
				}
			}
			l := newLayout(t)
			for tag, d := range tags {
				var list v1.Index // of referrers
				if err := json.Unmarshal(read("blobs/"+d.Encoded()), &list); err != nil {
					t.Fatal(err)
				}
				if tag != tt.without {
					l.index.Manifests = append(l.index.Manifests, list.Manifests...)
				}
				if tag != tt.without && list.Manifests == nil {
					l.index.Manifests = append(l.index.Manifests, v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: d, Annotations: map[string]string{v1.AnnotationRefName: tag}})
				}
			}
			for name, b := range fk.blobs {
				if strings.HasPrefix(name, "blobs/") {
					l.blob("", b)
				}
			}
			for _, from := range []api.Location{{Transport: "docker", Path: repo}, {Transport: api.OCILayout, Path: l.path(), Name: "latest"}} {
				s := newStore(t)
				s.Config.RegistriesDirPath = registriesd
				policied(t, s, fmt.Sprintf(`{"default":[{"type":"sigstoreSigned","keyPath":%q,"signedIdentity":%s}]}`, tt.key, tt.identity))
				_, err = s.Fetch(context.Background(), from, api.PullOptions{})
				if tt.want == "" && err != nil {
					t.Errorf("%s: %v", from.Transport, err)
				}
				if tt.want != "" {
					wantError(t, err, tt.want)
				}
			}
		})
	}
}
