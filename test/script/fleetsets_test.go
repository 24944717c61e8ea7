package script

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	emptyType  = "application/vnd.oci.empty.v1+json"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// newKey returns a key to sign with.
func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t *testing.T, key *ecdsa.PrivateKey, text []byte) string {
	t.Helper()
	sum := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// cosign2 pushes a signature of the set as cosign 2 does: an image with a tag.
func (f *fleet) cosign2(t *testing.T, set string, key *ecdsa.PrivateKey) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"type":"cosign container image signature","image":{"docker-manifest-digest":%q},"identity":{"docker-reference":"%s/fleet/set"}},"optional":null}`, set, f.remote.address)
	layer := f.remote.blob(t, "fleet/set", "application/vnd.dev.cosign.simplesigning.v1+json", payload)
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": signed(t, key, payload)}
	f.remote.manifest(t, "fleet/set", strings.Replace(set, ":", "-", 1)+".sig", imageType, map[string]any{
		"config": f.remote.blob(t, "fleet/set", "application/vnd.oci.image.config.v1+json", []byte(`{}`)), "layers": []descriptor{layer}})
}

// cosign3 pushes a bundle that refers to the set, as cosign 3 does in a registry without the referrers API.
func (f *fleet) cosign3(t *testing.T, set string, key *ecdsa.PrivateKey) {
	t.Helper()
	const payloadType = "application/vnd.in-toto+json"
	payload := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`,
		strings.TrimPrefix(set, "sha256:"))
	bundle, err := json.Marshal(map[string]any{"mediaType": bundleType, "verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": ""}},
		"dsseEnvelope": map[string]any{"payload": payload, "payloadType": payloadType,
			"signatures": []any{map[string]any{"sig": signed(t, key, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload))}}}})
	if err != nil {
		t.Fatal(err)
	}
	m := f.remote.manifest(t, "fleet/set", "bundle", imageType, map[string]any{"artifactType": bundleType,
		"config": f.remote.blob(t, "fleet/set", emptyType, []byte(`{}`)), "layers": []descriptor{f.remote.blob(t, "fleet/set", bundleType, bundle)},
		"subject": descriptor{MediaType: imageType, Digest: set, Size: 1}})
	m.ArtifactType = bundleType
	f.remote.manifest(t, "fleet/set", strings.Replace(set, ":", "-", 1), "application/vnd.oci.image.index.v1+json", map[string]any{"manifests": []descriptor{m}})
}

// require makes a box accept only sets that a key has signed.
func (f *fleet) require(t *testing.T, h *host, key *ecdsa.PrivateKey) {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	registries := filepath.Join(h.dir, "home", ".config", "containers", "registries.d")
	if err := os.MkdirAll(registries, 0o700); err != nil {
		t.Fatal(err)
	}
	keyFile, policy := filepath.Join(h.dir, "cosign.pub"), filepath.Join(h.dir, "policy.json")
	for name, text := range map[string]string{
		keyFile: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		policy: fmt.Sprintf(`{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{"%s/fleet/set":[{"type":"sigstoreSigned","keyPath":%q,"signedIdentity":{"type":"matchRepository"}}]}}}`,
			f.remote.address, keyFile),
		filepath.Join(registries, "fleet.yaml"): "default-docker: {use-sigstore-attachments: true}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.env = append(h.env, "CONTAINERS_POLICY_JSON="+policy)
}

// signatures: the canary applies only what the right key has signed. A set whose signature comes later is applied then.
func (f *fleet) signatures(t *testing.T) {
	canary, trusted, other := f.boxes[:1], newKey(t), newKey(t)
	f.require(t, canary[0], trusted)
	before := f.pods(t, canary)
	refused := func(want string) {
		t.Helper()
		expect(t, f.looks(t, canary), 1, want)
		if after := f.pods(t, canary); after != before {
			t.Errorf("the pod has changed:\n%s\n%s", before, after)
		}
	}
	set := f.push(t, version{name: "6"})
	refused("A signature was required, but no signature exists")
	f.cosign2(t, set, other)
	refused("ignature")
	f.cosign2(t, set, trusted)
	expect(t, f.looks(t, canary), 0, "set/set applied")
	f.runs(t, canary, "6")
	before = f.pods(t, canary)
	set = f.push(t, version{name: "7"})
	f.cosign3(t, set, other)
	refused("no signature by a key of the policy")
	f.cosign3(t, set, trusted)
	expect(t, f.looks(t, canary), 0, "set/set applied")
	f.runs(t, canary, "7")
}

// kinds follows artifacts that oras and docker compose have made. Those of Flux are in all other steps.
func (f *fleet) kinds(t *testing.T) {
	h := f.boxes[len(f.boxes)-1] // without a policy
	files := func(name string, annotation string, image string) []descriptor {
		pod := strings.NewReplacer("IMAGE", f.remote.address+"/fleet/app:"+image, "FIRST", "touch /ready", "name: web", "name: "+name).Replace(fleetPod)
		if annotation == "com.docker.compose.file" {
			pod = fmt.Sprintf("services:\n  %s: {image: %q, stop_grace_period: 0s, command: [sh, -c, 'trap exit TERM; sleep 1000 & wait']}\n", name, f.remote.address+"/fleet/app:"+image)
		}
		layer := f.remote.blob(t, "fleet/"+name, "application/vnd.oci.image.layer.v1.tar", []byte(pod))
		layer.Annotations = map[string]string{annotation: name + ".yaml"}
		return []descriptor{layer}
	}
	for name, kind := range map[string]struct{ artifact, annotation string }{
		"oras":    {"application/vnd.unknown.artifact.v1", "org.opencontainers.image.title"},
		"compose": {"application/vnd.docker.compose.project", "com.docker.compose.file"},
	} {
		source := "oci://" + f.remote.address + "/fleet/" + name + ":1"
		for _, image := range []string{"2", "3"} {
			f.remote.manifest(t, "fleet/"+name, "1", imageType, map[string]any{"artifactType": kind.artifact,
				"config": f.remote.blob(t, "fleet/"+name, emptyType, []byte(`{}`)), "layers": files(name, kind.annotation, image)})
			if out, err := h.podrun("follow", "--once", "--stable", "0s", source).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
			if out, err := h.podrun("exec", name, "--", "cat", "/version").CombinedOutput(); err != nil || string(out) != image {
				t.Errorf("%s runs version %q (%v), want %q", name, out, err, image)
			}
		}
		if out, err := h.podrun("follow", "rm", name).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
}

// removed removes the sets, after which nothing is left.
func (f *fleet) removed(t *testing.T) {
	f.each(f.boxes, func(h *host) {
		if out, err := h.podrun("follow", "rm", "set").CombinedOutput(); err != nil {
			t.Errorf("rm: %v\n%s", err, out)
		}
	})
	for _, h := range f.boxes {
		h.nothingLeft(t)
	}
}
