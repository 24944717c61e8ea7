package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// Who may have huge pages may still not mount their file system: root alone may.
func TestVolumesOfHugePagesAreRoots(t *testing.T) {
	plan := &pod.Plan{Name: "web", Resources: pod.Resources{HugePages: map[string]int64{"2MB": 2 << 20}},
		Volumes: []pod.Volume{{Name: "v", Kind: pod.EmptyDirHugePages, PageSize: 2 << 20}}}
	if err := refuseHugeVolumes(plan, 0); err != nil {
		t.Error(err)
	}
	err := refuseHugePages(plan, func(map[string]int64) error { return nil }) // these tests run as an ordinary user
	if err == nil || err.Error() != "volume v of pod web is one of huge pages: the kernel lets nobody but root mount those" || !strings.Contains(report.Hint(err), "MFD_HUGETLB") {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
	none := errors.New("there are none")
	if err := refuseHugePages(plan, func(map[string]int64) error { return none }); !errors.Is(err, none) {
		t.Error(err)
	}
}
