package image

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
)

// sign adds a signature of an image to its registry, as cosign does: an image of its own, whose layer
// contains the signed digest and name.
func sign(t *testing.T, fk *fake, image digest.Digest, as string, key *ecdsa.PrivateKey) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"type":"cosign container image signature","image":{"docker-manifest-digest":%q},"identity":{"docker-reference":%q}},"optional":{"creator":"test","timestamp":1}}`, image, as)
	sum := sha256.Sum256(payload)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	blob := func(mediaType string, b []byte) v1.Descriptor {
		d := digest.FromBytes(b)
		fk.blobs["blobs/"+d.String()] = b
		return v1.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(b))}
	}
	layer := blob("application/vnd.dev.cosign.simplesigning.v1+json", payload)
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)}
	m, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: blob(v1.MediaTypeImageConfig, []byte(`{}`)), Layers: []v1.Descriptor{layer},
	})
	if err != nil {
		t.Fatal(err)
	}
	tag := "manifests/sha256-" + image.Encoded() + ".sig"
	fk.blobs[tag], fk.types[tag] = m, v1.MediaTypeImageManifest
}

// newKey returns a key to sign with.
func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sigstoreAttachments returns a registries.d with which signatures of cosign 2 are read.
func sigstoreAttachments(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte("default-docker:\n  use-sigstore-attachments: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPolicySigstore pulls images signed as by cosign: with the right key, another one, for another name, of
// another image, and not at all.
func TestPolicySigstore(t *testing.T) {
	keys := []*ecdsa.PrivateKey{newKey(t), newKey(t)}
	trusted := publicKey(t, keys[0])
	registriesd := sigstoreAttachments(t)
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	image := l.index.Manifests[0].Digest
	for name, tt := range map[string]struct {
		sign func(fk *fake, repo string)
		want string
	}{
		"signed":      {func(fk *fake, repo string) { sign(t, fk, image, repo+":latest", keys[0]) }, ""},
		"other key":   {func(fk *fake, repo string) { sign(t, fk, image, repo+":latest", keys[1]) }, "ignature"},
		"other name":  {func(fk *fake, _ string) { sign(t, fk, image, "example.com/x:latest", keys[0]) }, "example.com/x:latest"},
		"other image": {func(fk *fake, repo string) { sign(t, fk, digest.FromString("y"), repo+":latest", keys[0]) }, "ignature"},
		"too much": {func(fk *fake, repo string) { // each attachment is of an allowed size
			sign(t, fk, image, repo+":latest", keys[0])
			tag := "manifests/sha256-" + image.Encoded() + ".sig"
			var m v1.Manifest
			if err := json.Unmarshal(fk.blobs[tag], &m); err != nil {
				t.Fatal(err)
			}
			big := make([]byte, 4<<20)
			fk.blobs["blobs/"+digest.FromBytes(big).String()] = big
			for range 20 {
				m.Layers = append(m.Layers, v1.Descriptor{MediaType: m.Layers[0].MediaType, Digest: digest.FromBytes(big), Size: int64(len(big))})
			}
			var err error
			if fk.blobs[tag], err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
		}, "sends more than 67108864 bytes"},
		"not signed": {func(*fake, string) {}, "ignature"},
		"moved": {func(fk *fake, repo string) { // a good signature of something else
			sign(t, fk, digest.FromString("y"), repo+":latest", keys[0])
			other := "manifests/sha256-" + digest.FromString("y").Encoded() + ".sig"
			mine := "manifests/sha256-" + image.Encoded() + ".sig"
			fk.blobs[mine], fk.types[mine] = fk.blobs[other], fk.types[other]
		}, "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, l)
			tt.sign(fk, repo)
			s := newStore(t)
			s.Config.RegistriesDirPath = registriesd
			policied(t, s, fmt.Sprintf(`{"default":%s,"transports":{"docker":{"":[{"type":"sigstoreSigned","keyPath":%q}]}}}`, reject, trusted))
			if name == "too much" { // is found at the next check, which may be the next request: the reason depends on that
				_, err := s.Pull(context.Background(), repo, api.PullOptions{})
				wantError(t, err, tt.want)
				return
			}
			checkSigned(t, s, repo, tt.want)
		})
	}
}

// checkSigned pulls an image. The policy refuses it with the error want, and nothing stays in the store; "" is no error.
func checkSigned(t *testing.T, s *testStore, repo, want string) {
	t.Helper()
	_, err := s.Pull(context.Background(), repo, api.PullOptions{})
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	wantError(t, err, want)
	if api.Reason(err) != api.SignatureValidationFailed {
		t.Errorf("reason %q", api.Reason(err))
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}
