package policy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
)

// TestRequirementsForBundles: a requirement that asks for more than a signature by a key accepts no bundle.
func TestRequirementsForBundles(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for fields, want := range map[string]string{
		`"keyData":%q,"signedIdentity":{"type":"matchRepoDigestOrExact"}`:                                       "",
		`"keyDatas":[%q],"signedIdentity":{"type":"matchRepository"}`:                                           "",
		`"fulcio":{"caData":%q,"oidcIssuer":"x","subjectEmail":"x"}`:                                            "asks for certificates",
		`"pki":{"caRootsData":%q,"subjectEmail":"x"}`:                                                           "asks for certificates",
		`"keyData":%[1]q,"rekorPublicKeyData":%[1]q,"signedIdentity":{"type":"matchRepository"}`:                "an entry in a log",
		`"keyData":%[1]q,"rekorPublicKeyDatas":[%[1]q],"signedIdentity":{"type":"matchRepository"}`:             "an entry in a log",
		`"keyData":%q,"signedIdentity":{"type":"matchExact"}`:                                                   "signedIdentity matchExact",
		`"keyData":%q,"signedIdentity":{"type":"exactReference","dockerReference":"example.org/x:1"}`:           "signedIdentity exactReference",
		`"keyData":%q,"signedIdentity":{"type":"exactRepository","dockerRepository":"example.org/x"}`:           "signedIdentity exactRepository",
		`"keyData":%q,"signedIdentity":{"type":"remapIdentity","prefix":"mirror","signedPrefix":"example.org"}`: "signedIdentity remapIdentity",
	} {
		var r sigstoreSigned
		if err := json.Unmarshal(fmt.Appendf(nil, "{"+fields+"}", public), &r); err != nil {
			t.Fatal(err)
		}
		keys, err := r.keys()
		if want == "" && (err != nil || len(keys) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d keys, %v; want %q", fields, len(keys), err, want)
		}
	}
}
