// Package api is the border between the CLI and the image program, which links the library for compose
// files: the messages of both sides, and how a compose file is recognized.
//
// The CLI starts the program with a Request in JSON as its argument, and gets a Result in JSON from its
// standard output. The program reads its environment and the files that the request names.
package api

import (
	"bytes"
	"fmt"
)

// Request names the compose files of one project.
type Request struct {
	Files    []string `json:"files,omitempty"` // merged in this order; "-" is standard input; none: the files that docker compose would find
	Profiles []string `json:"profiles,omitempty"`
	EnvFiles []string `json:"envFiles,omitempty"` // none: .env beside the first file
	Project  string   `json:"project,omitempty"`
	Confined bool     `json:"confined,omitempty"` // under a policy, and in an artifact: only files of the project's directory, and variables of env files
}

// Result is a project as Kubernetes objects.
type Result struct {
	Manifest string    `json:"manifest,omitempty"` // documents in YAML; empty if there are problems
	Warnings []Message `json:"warnings,omitempty"` // attributes without effect
	Problems []Message `json:"problems,omitempty"` // why the files cannot be converted
}

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
