package manifest_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
)

func TestNetworkAnnotations(t *testing.T) {
	for value, want := range map[string]string{
		`podrun.dev/host-loopback: "true"`:    "",
		`podrun.dev/host-loopback: "false"`:   "",
		`podrun.dev/host-loopback: "yes"`:     `metadata.annotations[podrun.dev/host-loopback]: Unsupported value: "yes": supported values: "true", "false"`,
		`podrun.dev/cluster-services: "true"`: "",
		`podrun.dev/cluster-services: "yes"`:  `metadata.annotations[podrun.dev/cluster-services]: Unsupported value: "yes": supported values: "true", "false"`,
		`podrun.dev/host-loopback: ""`:        `metadata.annotations[podrun.dev/host-loopback]: Required value`,
	} {
		_, err := manifest.Load("f", onePod(value, app+tcpPort+"]}]"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", value, err, want)
		}
	}
}
