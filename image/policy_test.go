package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

func policied(t *testing.T, s *testStore, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.File = func() (string, error) { return path, nil }
}

const accept, reject = `[{"type":"insecureAcceptAnything"}]`, `[{"type":"reject"}]`

// TestPolicy: the most specific scope applies, and nothing in the file is ignored.
func TestPolicy(t *testing.T) {
	fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	host, _, _ := strings.Cut(repo, "/")
	for name, tt := range map[string]struct{ policy, want string }{
		"accepted by default": {`{"default":` + accept + `}`, ""},
		"rejected by default": {`{"default":` + reject + `}`, "rejected by policy"},
		"host accepted":       {`{"default":` + reject + `,"transports":{"docker":{"` + host + `":` + accept + `}}}`, ""},
		"repository rejected": {`{"default":` + accept + `,"transports":{"docker":{"` + host + `":` + accept + `,"` + repo + `":` + reject + `}}}`, "rejected by policy"},
		"tag accepted":        {`{"default":` + reject + `,"transports":{"docker":{"` + repo + `":` + reject + `,"` + repo + `:latest":` + accept + `}}}`, ""},
		"other host":          {`{"default":` + reject + `,"transports":{"docker":{"example.com":` + accept + `}}}`, "rejected by policy"},
		"other transport":     {`{"default":` + reject + `,"transports":{"oci":{"":` + accept + `}}}`, "rejected by policy"},
		"both":                {`{"default":[{"type":"insecureAcceptAnything"},{"type":"reject"}]}`, "rejected by policy"},
		"signed by nobody":    {`{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/nonexistent"}]}`, "ignature"},
		"sigstore by nobody":  {`{"default":[{"type":"sigstoreSigned","keyData":"LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFMUQwSXdGK1NGSmF6MnpYdVdmTjdGOWxOSmJ0Ygp4QmlJaEh5T0JKb2ZnMWFWcnVDQkFQRW9IaVpEQ1ZuU2NJVlB3MHl6SWlNdVh3WTVRd0Y2bXc9PQotLS0tLUVORCBQVUJMSUMgS0VZLS0tLS0K"}]}`, ""},
		"unknown type":        {`{"default":[{"type":"whatever"}]}`, "whatever"},
		"unknown key":         {`{"default":` + accept + `,"defalt":[]}`, "defalt"},
		"nothing":             {`{}`, "Default policy is missing"},
		"no requirement":      {`{"default":[]}`, "not be empty"},
		"rubbish":             {`{`, "policy.json"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			policied(t, s, tt.policy)
			_, err := s.Pull(context.Background(), repo, api.PullOptions{})
			if name == "sigstore by nobody" {
				if err == nil || api.Reason(err) != api.SignatureValidationFailed {
					t.Errorf("%v, reason %q", err, api.Reason(err))
				}
				return
			}
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, tt.want)
			if api.Reason(err) != api.SignatureValidationFailed || !strings.Contains(report.Hint(err), "containers-policy.json(5)") {
				t.Errorf("reason %q, hint %q", api.Reason(err), report.Hint(err))
			}
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
	asked := 0
	fk.asked.Range(func(k, _ any) bool {
		if strings.Contains(k.(string), "blobs/") {
			asked++
		}
		return true
	})
	if asked != 2 {
		t.Errorf("%d blobs were fetched, want 2: only what was accepted", asked)
	}
}

// TestPolicyOfFiles: an image from a file or directory is checked by its path.
func TestPolicyOfFiles(t *testing.T) {
	dir := newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "x"})}}).path()
	for name, tt := range map[string]struct {
		policy string
		want   string
	}{
		"rejected":        {`{"default":` + reject + `}`, "rejected by policy"},
		"directory":       {`{"default":` + reject + `,"transports":{"oci":{"` + dir + `":` + accept + `}}}`, ""},
		"directory above": {`{"default":` + reject + `,"transports":{"oci":{"` + filepath.Dir(dir) + `":` + accept + `}}}`, ""},
		"other directory": {`{"default":` + accept + `,"transports":{"oci":{"` + dir + `":` + reject + `}}}`, "rejected by policy"},
		"only dir":        {`{"default":` + reject + `,"transports":{"dir":{"":` + accept + `}}}`, "rejected by policy"},
		"must be signed":  {`{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/nonexistent"}]}`, "ignature"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			policied(t, s, tt.policy)
			_, err := s.Load(context.Background(), dir)
			if tt.want == "" && err != nil {
				t.Error(err)
			}
			if tt.want != "" {
				wantError(t, err, tt.want)
			}
		})
	}
}

// TestPolicySigned pulls images signed with gpg and skopeo: with the right key, another key, and changed.
func TestPolicySigned(t *testing.T) {
	testenv.Need(t, func() error { _, err := exec.LookPath("gpg"); return err })
	addr := startRegistry(t)
	home := t.TempDir()
	gpg := func(args ...string) []byte {
		cmd := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gpg %v: %v", args, err)
		}
		return out
	}
	t.Cleanup(func() { exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() })
	keys := t.TempDir()
	for _, who := range []string{"good", "other"} {
		gpg("--quick-generate-key", who+"@example.com", "rsa2048", "sign", "never")
		if err := os.WriteFile(filepath.Join(keys, who), gpg("--export", who+"@example.com"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lookaside := t.TempDir()
	registriesd := t.TempDir()
	conf := fmt.Sprintf("default-docker:\n  sigstore: file://%s\n", lookaside)
	if err := os.WriteFile(filepath.Join(registriesd, "x.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	layout := newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "x"})}}).path()
	push := func(tag string, sign ...string) string {
		ref := addr + "/x:" + tag
		args := append([]string{"--insecure-policy", "--registries.d", registriesd, "--tmpdir", t.TempDir(), "copy", "--dest-tls-verify=false"}, sign...)
		cmd := exec.Command("skopeo", append(args, "oci:"+layout+":x", "docker://"+ref)...)
		cmd.Env = append(os.Environ(), "GNUPGHOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("skopeo: %v\n%s", err, out)
		}
		return ref
	}
	signed, unsigned := push("signed", "--sign-by", "good@example.com"), addr+"/y:unsigned"
	skopeo(t, "copy", "--dest-tls-verify=false", "oci:"+layout+":x", "docker://"+unsigned)
	for name, tt := range map[string]struct{ key, ref, want string }{
		"signed":     {"good", signed, ""},
		"other key":  {"other", signed, "ignature"},
		"not signed": {"good", unsigned, "ignature"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.Config.RegistriesDirPath = registriesd
			policied(t, s, fmt.Sprintf(`{"default":%s,"transports":{"docker":{"":[{"type":"signedBy","keyType":"GPGKeys","keyPath":%q}]}}}`, reject, filepath.Join(keys, tt.key)))
			_, err := s.Pull(context.Background(), tt.ref, api.PullOptions{})
			if tt.want == "" && err != nil {
				t.Error(err)
			}
			if tt.want != "" {
				wantError(t, err, tt.want)
			}
		})
	}
}

// TestPolicyExpiredKey: a signature that was good when it was made, by a key that has expired since, is refused.
func TestPolicyExpiredKey(t *testing.T) {
	testenv.Need(t, func() error { _, err := exec.LookPath("gpg"); return err })
	home := t.TempDir()
	t.Cleanup(func() { exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() })
	gpg := func(stdin, now string, args ...string) []byte {
		cmd := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", "", "--faked-system-time", now + "!"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gpg %v: %v", args, err)
		}
		return out
	}
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	_, repo := newFake(t, l)
	top := l.index.Manifests[0].Digest
	lookaside, registriesd := t.TempDir(), t.TempDir()
	conf := fmt.Sprintf("default-docker:\n  lookaside: file://%s\n", lookaside)
	if err := os.WriteFile(filepath.Join(registriesd, "x.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	payload := fmt.Sprintf(`{"critical":{"type":"atomic container signature","image":{"docker-manifest-digest":%q},"identity":{"docker-reference":%q}},"optional":{}}`, top, repo+":latest")
	for name, tt := range map[string]struct{ expires, want string }{"never": {"never", ""}, "after a day": {"1d", "ignature"}} {
		t.Run(name, func(t *testing.T) {
			user := strings.ReplaceAll(name, " ", "-") + "@example.com"
			gpg("", "20240101T000000", "--quick-generate-key", user, "rsa2048", "sign", tt.expires)
			signature := filepath.Join(lookaside, "x@"+strings.Replace(top.String(), ":", "=", 1), "signature-1")
			if err := os.MkdirAll(filepath.Dir(signature), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(signature, gpg(payload, "20240101T010000", "--local-user", user, "--sign"), 0o600); err != nil {
				t.Fatal(err)
			}
			key := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(key, gpg("", "20240101T010000", "--export", user), 0o600); err != nil {
				t.Fatal(err)
			}
			s := newStore(t)
			s.Config.RegistriesDirPath = registriesd
			policied(t, s, fmt.Sprintf(`{"default":%s,"transports":{"docker":{"":[{"type":"signedBy","keyType":"GPGKeys","keyPath":%q}]}}}`, reject, key))
			_, err := s.Pull(context.Background(), repo, api.PullOptions{})
			if tt.want == "" && err != nil {
				t.Error(err)
			}
			if tt.want != "" {
				wantError(t, err, tt.want)
			}
		})
	}
}
