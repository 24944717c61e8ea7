package podutil

import (
	"slices"
	"testing"
)

func TestParseStartAfter(t *testing.T) {
	for value, want := range map[string][]StartAfter{
		"db=Ready":                        {{"db", AfterReady}},
		"db=Running, migration=Succeeded": {{"db", AfterRunning}, {"migration", AfterSucceeded}},
		"":                                nil,
		"db":                              nil,
		"=Ready":                          nil,
		"db=Healthy":                      nil,
		"db=Ready,":                       nil,
		"db=Ready migration=Succeeded":    nil,
	} {
		got, err := ParseStartAfter(value)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("ParseStartAfter(%q) = %v, %v", value, got, err)
		}
	}
}
