package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const version = `{"version": "v0.1.0", "goVersion": "go1.26.8", "date": "2026-11-26T15:30:43Z", "libraries": [
	{"name": "github.com/godbus/dbus/v5", "version": "v5.2.2"},
	{"name": "github.com/docker/docker", "version": "v28.3.2+incompatible"},
	{"name": "libseccomp", "version": "2.5.4-1+deb12u1"}]}`

func TestWrite(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "podrun")
	if err := os.WriteFile(binary, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, strings.NewReader(version), binary, "amd64"); err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&out, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if c := bom.Metadata.Component; bom.Metadata.Timestamp != "2026-11-26T15:30:43Z" || c.Version != "v0.1.0" || (*c.Hashes)[0].Value != "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" {
		t.Errorf("%+v", bom.Metadata)
	}
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.PackageURL)
	}
	want := "pkg:golang/stdlib@1.26.8 pkg:golang/github.com/godbus/dbus/v5@v5.2.2 pkg:golang/github.com/docker/docker@v28.3.2%2Bincompatible pkg:deb/debian/libseccomp@2.5.4-1%2Bdeb12u1"
	if strings.Join(got, " ") != want {
		t.Errorf("components %q", got)
	}
	if d := *bom.Dependencies; len(d) != 1 || d[0].Ref != "podrun" || strings.Join(*d[0].Dependencies, " ") != want {
		t.Errorf("dependencies %+v", d)
	}
}
