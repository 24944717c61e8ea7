package image

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestPolicyOfImports: a root file system is checked, too, by its path as a tarball; and a refused one
// leaves nothing behind.
func TestPolicyOfImports(t *testing.T) {
	tar := filepath.Join(t.TempDir(), "root.tar")
	if err := os.WriteFile(tar, layerTar(t, f{Name: "x"}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ policy, want string }{
		"rejected":       {`{"default":` + reject + `}`, "rejected by policy"},
		"must be signed": {`{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/nonexistent"}]}`, "ignature"},
		"its directory":  {`{"default":` + reject + `,"transports":{"tarball":{"` + filepath.Dir(tar) + `":` + accept + `}}}`, ""},
		"all of them":    {`{"default":` + reject + `,"transports":{"tarball":{"":` + accept + `}}}`, ""},
		"other files":    {`{"default":` + reject + `,"transports":{"docker-archive":{"":` + accept + `}}}`, "rejected by policy"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			policied(t, s, tt.policy)
			_, err := s.Import(context.Background(), tar, "localhost/x:1")
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, tt.want)
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}
