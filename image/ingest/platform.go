package ingest

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// choosePlatform returns the manifest for this machine's platform from an index: for its processor's variant
// (arm/v7) or, in order, for those that it can run too (v6, v5). The library has the list. sys names another
// platform; nil is this machine.
func choosePlatform(sys *types.SystemContext, raw []byte, mediaType string) (digest.Digest, error) {
	list, err := manifest.ListFromBlob(raw, mediaType)
	if err != nil {
		return "", fmt.Errorf("read index: %w", err)
	}
	d, err := list.ChooseInstance(sys)
	if err == nil {
		return d, records.CheckDigest(d)
	}
	offers := platforms(raw)
	if len(offers) == 0 {
		return "", report.New(report.Failure, "the image is malformed", "there is no image in the index: %w", err)
	}
	return "", report.New(report.Failure, "the image has to be built for this platform",
		"there is no image for %s; there is one for %s", thisPlatform(sys), strings.Join(offers, ", "))
}

func thisPlatform(sys *types.SystemContext) string {
	arch := runtime.GOARCH
	if sys != nil && sys.ArchitectureChoice != "" {
		arch = sys.ArchitectureChoice
	}
	if sys != nil && sys.VariantChoice != "" {
		arch += "/" + sys.VariantChoice
	}
	return "linux/" + arch
}

// platforms returns the platforms of an index's images as os/arch/variant. An entry without a platform is no
// image: builders store attestations there.
func platforms(index []byte) []string {
	var list struct{ Manifests []v1.Descriptor }
	if json.Unmarshal(index, &list) != nil {
		return nil
	}
	var names []string
	for _, m := range list.Manifests {
		p := m.Platform
		if p == nil || p.OS == "" || p.OS == "unknown" {
			continue
		}
		name := p.OS + "/" + p.Architecture
		if p.Variant != "" {
			name += "/" + p.Variant
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	const most = 20
	if over := len(names) - most; over > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", over))
	}
	return names
}
