package podutil

import (
	"slices"
	"testing"
	"time"
)

func TestParseStartAfter(t *testing.T) {
	for value, want := range map[string][]StartAfter{
		"db=Ready":                        {{"db", AfterReady, 0}},
		"db=Running, migration=Succeeded": {{"db", AfterRunning, 0}, {"migration", AfterSucceeded, 0}},
		"db=Healthy,queue=Healthy:1m30s":  {{"db", AfterHealthy, 0}, {"queue", AfterHealthy, 90 * time.Second}},
		"":                                nil,
		"db":                              nil,
		"=Ready":                          nil,
		"db=healthy":                      nil,
		"db=Healthy:":                     nil,
		"db=Healthy:-1s":                  nil,
		"db=Ready:1s":                     nil,
		"db=Ready,":                       nil,
		"db=Ready migration=Succeeded":    nil,
	} {
		got, err := ParseStartAfter(value)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("ParseStartAfter(%q) = %v, %v", value, got, err)
		}
	}
}
