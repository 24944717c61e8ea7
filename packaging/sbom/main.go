// Command sbom reads the output of `podrun version -o json` from standard input and writes the CycloneDX bill of
// materials of a podrun binary to standard output.
//
//	sbom BINARY ARCH <version.json >bom.json
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// release is the output of `podrun version -o json`.
type release struct {
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	Date      string `json:"date"`
	Libraries []struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"libraries"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY ARCH <version.json")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Stdin, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, version io.Reader, binary, arch string) error {
	var r release
	if err := json.NewDecoder(version).Decode(&r); err != nil {
		return fmt.Errorf("read the version: %w", err)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	podrun := cdx.Component{
		BOMRef: "podrun", Type: cdx.ComponentTypeApplication, Name: "podrun", Version: r.Version,
		PackageURL: "pkg:golang/github.com/podrun/podrun@" + r.Version + "?type=module&goarch=" + arch,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	components := []cdx.Component{component("stdlib", strings.TrimPrefix(r.GoVersion, "go"), "pkg:golang/stdlib@")}
	for _, l := range r.Libraries {
		kind := "pkg:deb/debian/" // a C library, by the version of its Debian package
		if strings.Contains(l.Name, ".") {
			kind = "pkg:golang/"
		}
		components = append(components, component(l.Name, l.Version, kind+l.Name+"@"))
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.Date, Component: &podrun}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: podrun.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// component returns a library. purl is its package URL without the version.
func component(name, version, purl string) cdx.Component {
	purl += strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl}
}
