package podutil

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
