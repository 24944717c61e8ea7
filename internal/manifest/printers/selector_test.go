package printers

import "testing"

func TestSelector(t *testing.T) {
	pod := map[string]string{"app": "web", "tier": "front"}
	for text, want := range map[string]bool{
		"app=web": true, "app==web,tier!=db": true, "app in (web, db)": true, "tier": true, "!old": true, "": true,
		"app=db": false, "app=web,old": false, "app notin (web)": false,
	} {
		s, err := ParseSelector(text)
		if err != nil || s.Matches(pod) != want {
			t.Errorf("%q: %v, want %v (%v)", text, !want, want, err)
		}
	}
	for _, text := range []string{"app=web=x", "in (a", "a b", "-x=y"} {
		if _, err := ParseSelector(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
