package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/internal/report"
)

// CheckConfig checks the parts of a config that decide whether the image can run here, and returns its
// layers.
func CheckConfig(config []byte) ([]digest.Digest, error) {
	var c v1.Image
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	switch {
	case !utf8.Valid(config):
		return nil, errors.New("read config: it is not UTF-8")
	case c.RootFS.Type != "layers":
		return nil, fmt.Errorf("read config: root file system type %q is not supported", c.RootFS.Type)
	case len(c.RootFS.DiffIDs) > MaxLayers:
		return nil, fmt.Errorf("read config: %d layers are more than the %d that can be mounted", len(c.RootFS.DiffIDs), MaxLayers)
	case !runsHere(c.OS, c.Architecture):
		return nil, report.New(report.Failure, "the image has to be built for this platform",
			"the image is for %s/%s, this machine is linux/%s", c.OS, c.Architecture, runtime.GOARCH)
	}
	for _, d := range c.RootFS.DiffIDs {
		if err := CheckDigest(d); err != nil {
			return nil, fmt.Errorf("read config: %w", err)
		}
	}
	return c.RootFS.DiffIDs, nil
}

// runsHere reports whether this machine can run an image. An image without a platform is accepted; so are
// the 32-bit programs of a 64-bit machine.
func runsHere(os, arch string) bool {
	narrow := map[string]string{"amd64": "386", "arm64": "arm"}
	return (os == "" || os == "linux") && (arch == "" || arch == runtime.GOARCH || arch == narrow[runtime.GOARCH])
}

// ArtifactLabel is the label with the type of an OCI artifact, in the config that the store makes for it.
const ArtifactLabel = "dev.podrun.image.artifact"

// MaxLayers is the limit of layers in one overlay: the options of mount(2) are one page, and a layer needs
// some 18 bytes of it. Docker's limit is 127.
const MaxLayers = 200
