package image

import (
	"crypto/ecdsa"
	"fmt"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
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
			refer(t, fk, "referrers/"+set.String(), set, signedBundle(t, set, signPredicate, key))
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
