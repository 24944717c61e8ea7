package manifest

import "testing"

func TestParseLogLimits(t *testing.T) {
	for text, want := range map[string]int64{
		"10Mi": 10 << 20, "4096": 4096, "4Ki": 4096, "1Gi": 1 << 30, "1e6": 1000000, "5M": 5000000,
		"": 0, "4095": 0, "0": 0, "-1": 0, "10MB": 0, "10 Mi": 0, "x": 0, "1.5": 0, "9999999Ei": 0, "1e99": 0, "5500m": 0,
	} {
		if got, err := ParseLogMaxSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("size %q: %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]int{"2": 2, "5": 5, "1000": 1000, "1": 0, "0": 0, "-3": 0, "1001": 0, "x": 0, "": 0, "2.5": 0, "99999999999999999999": 0} {
		if got, err := ParseLogMaxFiles(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("files %q: %d, %v, want %d", text, got, err, want)
		}
	}
}

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
