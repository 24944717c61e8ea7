package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/report"
)

func TestHugePages(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]string{"hugepages-2048kB": "10\n", "hugepages-1048576kB": "0\n", "hugepages-64kB": "1\n"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "nr_hugepages"), []byte(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		need       map[string]int64
		unlimited  error
		want, hint string
	}{
		{map[string]int64{"2MB": 20 << 20, "64KB": 64 << 10}, nil, "", ""},
		{map[string]int64{"2MB": 22 << 20}, nil, "23068672 bytes of 2MB pages are requested, and this machine has reserved 20971520", "hugepages-2048kB/nr_hugepages"},
		{map[string]int64{"1GB": 1 << 30}, nil, "has reserved 0", "hugepages-1048576kB/nr_hugepages"},
		{map[string]int64{"32MB": 32 << 20}, nil, "this machine has no huge pages of 32MB", "there are 1GB, 2MB, 64KB"},
		{map[string]int64{"2MB": 2 << 20}, errors.New("the cgroup controller hugetlb is not delegated to this user"), "they cannot be limited: the cgroup controller hugetlb", "run the pod as root"},
	} {
		err := hugePages(dir, c.need, c.unlimited)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(report.Hint(err), c.hint) {
			t.Errorf("%v: %v, hint %q", c.need, err, report.Hint(err))
		}
	}
}
