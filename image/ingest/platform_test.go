package ingest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"
)

// TestChoosePlatform chooses a machine's image from indexes of both kinds.
func TestChoosePlatform(t *testing.T) {
	raspberry := "linux/amd64 linux/arm/v5 linux/arm/v6 linux/arm/v7 linux/arm64/v8 linux/s390x unknown/unknown"
	for _, tt := range []struct{ offers, machine, want string }{
		{raspberry, "amd64", "linux/amd64"},
		{raspberry, "arm/v8", "linux/arm/v7"}, // 32-bit programs on a 64-bit processor
		{raspberry, "arm/v7", "linux/arm/v7"},
		{raspberry, "arm/v6", "linux/arm/v6"},
		{raspberry, "arm/v5", "linux/arm/v5"},
		{raspberry, "arm64/v8", "linux/arm64/v8"},
		{raspberry, "riscv64", "there is no image for linux/riscv64; there is one for linux/amd64, linux/arm/v5, linux/arm/v6, linux/arm/v7, linux/arm64/v8, linux/s390x"},
		{"linux/arm/v6 linux/arm64", "arm/v7", "linux/arm/v6"},
		{"linux/arm linux/arm64", "arm/v7", "linux/arm"},
		{"linux/arm linux/arm64", "arm64/v8", "linux/arm64"},
		{"linux/arm/v7", "arm/v6", "there is no image for linux/arm/v6; there is one for linux/arm/v7"},
		{"windows/amd64", "amd64", "there is no image for linux/amd64; there is one for windows/amd64"},
		{"unknown/unknown", "amd64", "there is no image in the index"},
	} {
		for _, mediaType := range []string{v1.MediaTypeImageIndex, manifest.DockerV2ListMediaType} {
			t.Run(strings.ReplaceAll(tt.machine+" of "+tt.offers, "/", "_"), func(t *testing.T) {
				index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: mediaType}
				names := map[digest.Digest]string{}
				for _, name := range strings.Fields(tt.offers) {
					words := append(strings.Split(name, "/"), "")
					d := digest.FromString(name)
					names[d] = name
					index.Manifests = append(index.Manifests, v1.Descriptor{
						MediaType: v1.MediaTypeImageManifest, Digest: d, Size: 1,
						Platform: &v1.Platform{OS: words[0], Architecture: words[1], Variant: words[2]},
					})
				}
				raw, err := json.Marshal(index)
				if err != nil {
					t.Fatal(err)
				}
				arch, variant, _ := strings.Cut(tt.machine, "/")
				d, err := choosePlatform(&types.SystemContext{OSChoice: "linux", ArchitectureChoice: arch, VariantChoice: variant}, raw, mediaType)
				if err != nil {
					if !strings.HasPrefix(err.Error(), tt.want) {
						t.Errorf("%v, want %s", err, tt.want)
					}
				} else if names[d] != tt.want {
					t.Errorf("%s, want %s", names[d], tt.want)
				}
			})
		}
	}
}

// TestPlatformsAreNotTooMany: an error fits a screen.
func TestPlatformsAreNotTooMany(t *testing.T) {
	var all []string
	for i := range 10_000 {
		all = append(all, fmt.Sprintf(`{"platform":{"os":"linux","architecture":"a%d"}}`, i))
	}
	if got := platforms([]byte(`{"manifests":[` + strings.Join(all, ",") + `]}`)); len(got) != 21 || got[20] != "9980 more" {
		t.Errorf("%d: %v", len(got), got)
	}
}
