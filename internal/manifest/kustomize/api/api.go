// Package api is the border between the CLI and the image program, which links kustomize and the library for patches: the
// messages of both sides.
//
// The program reads a Request or a Patch in JSON from its standard input, and writes a Result in JSON to its standard
// output. It reads the files of the kustomization.
package api

// Request names a directory with a kustomization.
type Request struct {
	Dir         string `json:"dir"`
	AllowRemote bool   `json:"allowRemote,omitempty"` // bases and files by git and http
}

// Patch is the change of one object.
type Patch struct {
	Type   PatchType `json:"type"`
	Object []byte    `json:"object"`           // in JSON
	Patch  []byte    `json:"patch"`            // in JSON or YAML
	Schema *Schema   `json:"schema,omitempty"` // of the object, for a strategic merge patch
}

// PatchType is a form of patches, by the words of kubectl patch --type.
type PatchType string

// The forms of patches.
const (
	Strategic PatchType = "strategic"
	Merge     PatchType = "merge" // RFC 7386
	JSON      PatchType = "json"  // RFC 6902
)

// Result is the output, or why there is none.
type Result struct {
	Output  []byte `json:"output,omitempty"`  // a manifest in YAML, or the changed object in JSON
	Warning string `json:"warning,omitempty"` // what kustomize has printed, lines
	Problem string `json:"problem,omitempty"`
	Remote  bool   `json:"remote,omitempty"` // the problem is a remote base
}
