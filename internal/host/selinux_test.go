package host

import "testing"

// The kernel's answer says of each permission whether it is given, and of labels whether
// they are held to anything.
func TestAllows(t *testing.T) {
	for _, c := range []struct {
		answer     string
		permission int
		want       bool
	}{
		{"2 ffffffff 0 ffffffff 3 0", 2, true},
		{"2 ffffffff 0 ffffffff 3 0", 1, false},
		{"0 ffffffff 0 ffffffff 3 1", 2, true},
		{"80000000 ffffffff 0 ffffffff 3 0", 32, true},
	} {
		if got, err := allows(c.answer, c.permission); err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	for _, rubbish := range []string{"", "2 ffffffff", "x"} {
		if _, err := allows(rubbish, 2); err == nil {
			t.Errorf("%q is an answer", rubbish)
		}
	}
}
