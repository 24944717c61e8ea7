package execshim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/protocol"
)

// SELinux takes the bare label, AppArmor a profile behind a word; a flag tells the program which it
// is.
func TestLabelInOrder(t *testing.T) {
	const label = "system_u:system_r:container_t:s0:c1,c2"
	order, err := (&Config{Label: label}).encode(true)
	if err != nil || !bytes.HasSuffix(order, []byte("\x00"+label)) {
		t.Errorf("%v, %q", err, order)
	}
	plain, err := (&Config{AppArmor: "tight"}).encode(true)
	if err != nil || !bytes.HasSuffix(plain, []byte("\x00exec tight")) {
		t.Errorf("%v, %q", err, plain)
	}
	if order[4]&protocol.ShimLabel == 0 && order[7]&protocol.ShimLabel == 0 {
		t.Error("the program takes the label for a profile")
	}
	if _, err := (&Config{Label: strings.Repeat("l", protocol.MaxShimPath)}).encode(true); err == nil {
		t.Error("a label without end is taken")
	}
}
