// Package api has what the CLI and the image program, which links the library for compose files, share: their
// messages, names and labels, and how a compose file is recognized.
//
// The CLI starts the program with a Request in JSON as its argument, and gets a Result in JSON from its
// standard output. The program reads its environment and the files that the request names.
package api

import (
	"bytes"
	"fmt"
	"path"
)

// FileNames are the names of the compose file of a directory, the preferred first.
var FileNames = []string{"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"}

// Request names the compose files of one project.
type Request struct {
	Files    []string `json:"files,omitempty"` // merged in this order; "-" is standard input; none: the files that docker compose would find
	Profiles []string `json:"profiles,omitempty"`
	EnvFiles []string `json:"envFiles,omitempty"` // none: .env beside the first file
	Project  string   `json:"project,omitempty"`
	Confined bool     `json:"confined,omitempty"` // under a policy, and in an artifact: only files of the project's directory, and variables of env files

	Directory string   `json:"directory,omitempty"` // the project's directory; "": the first file's
	Services  []string `json:"services,omitempty"`  // only these, and what they depend on; none: all
	Alone     bool     `json:"alone,omitempty"`     // without what Services depend on
	Model     bool     `json:"model,omitempty"`     // the result has the merged file, too

	Inputs []Build `json:"inputs,omitempty"` // nothing but the Inputs of these builds is wanted
}

// Result is a project as Kubernetes objects.
type Result struct {
	Manifest string    `json:"manifest,omitempty"` // documents in YAML; empty if there are problems
	Warnings []Message `json:"warnings,omitempty"` // attributes without effect
	Problems []Message `json:"problems,omitempty"` // why the files cannot be converted

	Project  string    `json:"project,omitempty"`  // its name, also if there are problems; "" if the files cannot be read
	Files    []string  `json:"files,omitempty"`    // that were merged, as the user or the search has named them
	Services []Service `json:"services,omitempty"` // sorted by name
	Known    []string  `json:"known,omitempty"`    // the names of all services, also of those that were not asked for
	Builds   []Build   `json:"builds,omitempty"`   // of Services, or of a request for Inputs
	Model    string    `json:"model,omitempty"`    // the merged file
}

// Service is one service of a result.
type Service struct {
	Name  string   `json:"name"`
	Image string   `json:"image"`
	Pods  []string `json:"pods,omitempty"` // their names
}

// Build says how an image is built.
type Build struct {
	Service    string            `json:"service"`
	Image      string            `json:"image"`
	Context    string            `json:"context"` // a directory, or what only the builder reads, such as the URL of a repository
	Dockerfile string            `json:"dockerfile,omitempty"`
	Inline     string            `json:"inline,omitempty"` // the text of the Dockerfile, instead of a file
	Args       map[string]string `json:"args,omitempty"`
	Target     string            `json:"target,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Network    string            `json:"network,omitempty"`
	ExtraHosts []string          `json:"extraHosts,omitempty"` // NAME:ADDRESS
	ShmSize    int64             `json:"shmSize,omitempty"`    // bytes; 0: the builder's default
	Tags       []string          `json:"tags,omitempty"`       // further names of the image
	NoCache    bool              `json:"noCache,omitempty"`
	Pull       bool              `json:"pull,omitempty"`    // newer base images are fetched
	Always     bool              `json:"always,omitempty"`  // each up builds it
	Inputs     string            `json:"inputs,omitempty"`  // a hash of all of the above and of the context's files; "" until it is asked for
	Problem    string            `json:"problem,omitempty"` // why there is no hash; "": there is one
}

// IsLocal reports whether the context is a directory of this machine.
func (b *Build) IsLocal() bool { return path.IsAbs(b.Context) }

// Message is about one attribute of a compose file.
type Message struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // 1-based; 0 if it is unknown
	Path string `json:"path,omitempty"` // services.web.ports
	Text string `json:"text"`
}

// String returns the message with its position.
func (m Message) String() string {
	place := m.File
	if m.Line > 0 {
		place = fmt.Sprintf("%s, line %d", m.File, m.Line)
	}
	for _, part := range []string{m.Path, m.Text} {
		if place != "" && part != "" {
			place += ": "
		}
		place += part
	}
	return place
}

// IsComposeFile reports whether a text is a compose file: it has the key services or include at the top,
// and neither apiVersion nor kind, which every Kubernetes object has.
func IsComposeFile(text []byte) bool {
	is := false
	for line := range bytes.Lines(text) {
		key, _, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		switch string(bytes.Trim(bytes.TrimRight(key, " "), `"'`)) { // a key that is indented keeps its spaces
		case "apiVersion", "kind":
			return false
		case "services", "include":
			is = true
		}
	}
	return is
}
