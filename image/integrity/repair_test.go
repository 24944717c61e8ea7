package integrity

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// damagedName returns a store with one record of a name, whose checksum does not match after a change.
func damagedName(t *testing.T, from, to string) (s *records.Store, file string) {
	t.Helper()
	s, err := records.Open(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	rec := records.Name{Header: records.Header{Version: records.RecordVersion}, Name: "example.org/x:1", ID: digest.FromString("x")}
	file = s.NameFile(rec.Name)
	if err := records.WriteRecord(file, rec); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, file
}

// TestRepairName: what a damaged record of a name says decides whether its registry is asked; the record stays as
// long as nothing better is there.
func TestRepairName(t *testing.T) {
	gone := errors.New("no such registry")
	for name, tt := range map[string]struct {
		from, to string
		pullErr  error
		pulled   string
		left     bool
		want     string
	}{
		"nothing can be read":             {`{"`, `}`, nil, "", false, ""},
		"its image is not here":           {`"example.org/x:1"`, `"example.org/x:1" `, nil, "example.org/x:1", true, ""},
		"its image's id has changed":      {"sha256:", "sha255:", nil, "example.org/x:1", true, ""},
		"the registry does not answer":    {"sha256:", "sha255:", gone, "example.org/x:1", true, "repair name example.org/x:1: no such registry"},
		"the name itself has changed too": {"example.org/x:1", "example.org/y:1", nil, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, file := damagedName(t, tt.from, tt.to)
			pulled := ""
			err := Repair(context.Background(), s, api.Verified{RecordFile: file}, func(_ context.Context, ref string, unnamed bool) (string, error) {
				if pulled = ref; unnamed {
					t.Error("the pull records no name")
				}
				return "", tt.pullErr
			})
			if pulled != tt.pulled {
				t.Errorf("pulled %q, want %q", pulled, tt.pulled)
			}
			if (err == nil) != (tt.want == "") || err != nil && (err.Error() != tt.want || !strings.Contains(report.Hint(err), "podrun image load")) {
				t.Errorf("%v, hint %q", err, report.Hint(err))
			}
			if _, err := os.Stat(file); (err == nil) != tt.left {
				t.Errorf("the record: %v", err)
			}
		})
	}
}

// TestRepairWithoutName: an image that no name leads to cannot be pulled.
func TestRepairWithoutName(t *testing.T) {
	s, err := records.Open(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	err = Repair(context.Background(), s, api.Verified{ID: "sha256:1"}, func(context.Context, string, bool) (string, error) {
		t.Error("it is pulled")
		return "", nil
	})
	if err == nil || !strings.Contains(err.Error(), "repair image sha256:1: it has no name to pull it by") {
		t.Error(err)
	}
}

func TestSummarize(t *testing.T) {
	for want, bad := range map[string][]layer.ChangedFile{
		"a: it is gone":             {{Name: "a", Why: "it is gone"}},
		"the recipe is damaged":     {{Why: "the recipe is damaged"}},
		"a: it is gone, and 2 more": {{Name: "a", Why: "it is gone"}, {Name: "b"}, {Name: "c"}},
	} {
		if got := summarize(bad); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
