package policy

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	sigstore "github.com/sigstore/sigstore/pkg/signature"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/internal/report"
)

// Referrers is what may refer to an image in its registry.
type Referrers struct {
	Digests []digest.Digest // of the image: of its index and its manifest
	// Bundles returns the sigstore bundles that refer to a digest, as JSON. They are not verified.
	Bundles func(ctx context.Context, of digest.Digest) ([][]byte, error)
}

// sigstoreSigned is a requirement of policy.json of that type. The library verifies the signatures of cosign 2, and
// does not see bundles, as which cosign 3 writes signatures.
type sigstoreSigned struct {
	Type           string   `json:"type"`
	KeyPath        string   `json:"keyPath"`
	KeyPaths       []string `json:"keyPaths"`
	KeyData        []byte   `json:"keyData"`
	KeyDatas       [][]byte `json:"keyDatas"`
	SignedIdentity struct {
		Type string `json:"type"`
	} `json:"signedIdentity"`
	rekorKeys
}

// rekorKeys are the keys of a log that must contain the signature.
type rekorKeys struct {
	Path  string   `json:"rekorPublicKeyPath"`
	Paths []string `json:"rekorPublicKeyPaths"`
	Data  []byte   `json:"rekorPublicKeyData"`
	Datas [][]byte `json:"rekorPublicKeyDatas"`
}

// meetsByBundles evaluates an image that the library has refused with reason, requirement by requirement. One of type
// sigstoreSigned is also met by a bundle.
func meetsByBundles(ctx context.Context, requirements signature.PolicyRequirements, img types.UnparsedImage, referrers *Referrers, reason error) error {
	asSigstore := make([]*sigstoreSigned, len(requirements))
	for i, requirement := range requirements {
		var r sigstoreSigned
		if text, err := json.Marshal(requirement); err == nil && json.Unmarshal(text, &r) == nil && r.Type == "sigstoreSigned" {
			asSigstore[i] = &r
		}
	}
	if !slices.ContainsFunc(asSigstore, func(r *sigstoreSigned) bool { return r != nil }) {
		return reason
	}
	var found [][]byte
	for _, d := range referrers.Digests {
		texts, err := referrers.Bundles(ctx, d)
		if err != nil {
			return fmt.Errorf("%w; read its sigstore bundles: %w", reason, err)
		}
		found = append(found, texts...)
	}
	if len(found) == 0 {
		return reason
	}
	for i, requirement := range requirements {
		refused := isAllowed(ctx, &signature.Policy{Default: signature.PolicyRequirements{requirement}}, img)
		if refused != nil && asSigstore[i] != nil {
			refused = asSigstore[i].metBy(found, referrers.Digests)
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

// requirementsFor returns the requirements of the scope of an image: the most specific one, as the library chooses it.
func requirementsFor(policy *signature.Policy, ref types.ImageReference) signature.PolicyRequirements {
	scopes := policy.Transports[ref.Transport().Name()]
	for _, name := range append(append([]string{ref.PolicyConfigurationIdentity()}, ref.PolicyConfigurationNamespaces()...), "") {
		if requirements, ok := scopes[name]; ok {
			return requirements
		}
	}
	return policy.Default
}

// metBy returns an error unless a bundle has a signature of one of the digests by a key of the requirement.
func (r *sigstoreSigned) metBy(bundles [][]byte, digests []digest.Digest) error {
	keys, err := r.keys()
	if err != nil {
		return err
	}
	var errs []error
	for _, text := range bundles {
		if err = verifyBundle(text, digests, keys); err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("no sigstore bundle is accepted: %w", errors.Join(errs...))
}

const otherFormat = "sign it as cosign 2 does: cosign sign --new-bundle-format=false --use-signing-config=false; podrun verifies bundles by keys only"

// keys returns the keys of the requirement, or an error if it requires more than a signature by a key.
func (r *sigstoreSigned) keys() ([]crypto.PublicKey, error) {
	texts := append(slices.Clone(r.KeyDatas), r.KeyData)
	for _, path := range append(slices.Clone(r.KeyPaths), r.KeyPath) {
		if path == "" {
			continue
		}
		text, err := readConfig(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	var keys []crypto.PublicKey
	for _, text := range texts {
		if text == nil {
			continue
		}
		key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
		if err != nil {
			return nil, fmt.Errorf("read public key: %w", err)
		}
		keys = append(keys, key)
	}
	switch {
	case len(keys) == 0:
		return nil, report.New(report.Failure, otherFormat, "the image has sigstore bundles, and the policy asks for certificates")
	case r.Path != "" || r.Data != nil || r.Paths != nil || r.Datas != nil:
		return nil, report.New(report.Failure, otherFormat, "the image has sigstore bundles, and the policy asks for an entry in a log (rekorPublicKey…)")
	case r.SignedIdentity.Type != "matchRepoDigestOrExact" && r.SignedIdentity.Type != "matchRepository":
		return nil, report.New(report.Failure, otherFormat, "the image has sigstore bundles, which name no image, and the policy asks for a name: signedIdentity %s", r.SignedIdentity.Type)
	}
	return keys, nil
}

// bundle is a sigstore bundle, as far as podrun reads it (sigstore protobuf-specs, sigstore_bundle.proto).
type bundle struct {
	DSSEEnvelope *struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  []struct {
			Sig []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

// statement is what a bundle signs (in-toto attestation, spec/v1/statement.md).
type statement struct {
	Type          string `json:"_type"`
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

// verifyBundle returns an error unless a bundle is cosign's signature of one of the digests by one of the keys. Other
// statements about an image, for example how it was built, are no signatures (cosign: specs/BUNDLE_SPEC.md).
func verifyBundle(text []byte, digests []digest.Digest, keys []crypto.PublicKey) error {
	var b bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	if b.DSSEEnvelope == nil || b.DSSEEnvelope.PayloadType != "application/vnd.in-toto+json" {
		return errors.New("the bundle is no in-toto statement")
	}
	// DSSE: protocol.md, Pre-Authentication Encoding
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(b.DSSEEnvelope.PayloadType), b.DSSEEnvelope.PayloadType, len(b.DSSEEnvelope.Payload), b.DSSEEnvelope.Payload)
	if !slices.ContainsFunc(keys, func(key crypto.PublicKey) bool {
		verifier, err := sigstore.LoadVerifier(key, crypto.SHA256)
		if err != nil {
			return false
		}
		for _, s := range b.DSSEEnvelope.Signatures {
			if verifier.VerifySignature(bytes.NewReader(s.Sig), bytes.NewReader(signed)) == nil {
				return true
			}
		}
		return false
	}) {
		return errors.New("the bundle has no signature by a key of the policy")
	}
	var s statement
	if err := json.Unmarshal(b.DSSEEnvelope.Payload, &s); err != nil {
		return fmt.Errorf("read the bundle's statement: %w", err)
	}
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://sigstore.dev/cosign/sign/v1" {
		return fmt.Errorf("the bundle is no signature of an image but a statement of type %s", s.PredicateType)
	}
	for _, subject := range s.Subject {
		if slices.Contains(digests, digest.NewDigestFromEncoded(digest.SHA256, subject.Digest["sha256"])) {
			return nil
		}
	}
	return fmt.Errorf("the bundle signs another digest than %s", digests[0])
}
