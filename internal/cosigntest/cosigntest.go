// Package cosigntest signs as cosign 3 does, for tests.
package cosigntest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// BundleType is the media type of a bundle, SignPredicate the kind of a statement that signs an image.
const (
	BundleType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
	SignPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// Bundle returns a sigstore bundle with a statement about an image, which is given by the digits of its digest.
func Bundle(sha256Digits, predicate string, key *ecdsa.PrivateKey) ([]byte, error) {
	const payloadType = "application/vnd.in-toto+json"
	payload := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`, sha256Digits, predicate)
	sum := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"mediaType": BundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": ""}},
		"dsseEnvelope":         map[string]any{"payload": payload, "payloadType": payloadType, "signatures": []any{map[string]any{"sig": signature}}}})
}
