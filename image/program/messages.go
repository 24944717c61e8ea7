// Package program is the interface between podrun and the image program, the process that links the
// libraries for registries and signatures: the messages of both sides, and the client.
//
// The image program is a child of the process that needs it, and serves one connection. Both sides send
// JSON values, one on a line. A request has a number, and any number of requests may run at once. The
// answer is any number of frames with this number, the last with Done. The program cancels all requests
// and exits when the connection ends: when its parent has no more requests, or has died.
package program

import (
	"context"
	"errors"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// Op is the operation of a request.
type Op string

const (
	Pull       Op = "pull"       // Ref, Options; answers with one of Added
	Load       Op = "load"       // Location; answers with Added, also with an error
	Import     Op = "import"     // Location.Path, Ref; answers with one of Added
	Save       Op = "save"       // Refs, SaveOptions, Target
	Push       Op = "push"       // Ref, To, Options; answers with Text, REPOSITORY@DIGEST
	PushTree   Op = "push-tree"  // Location.Path, Files, To, Annotations, Options; answers with Text, REPOSITORY@DIGEST
	Candidates Op = "candidates" // Ref; answers with Names
	Head       Op = "head"       // Ref, Options; answers with Text, the digest in the registry
	Login      Op = "login"      // Account, Options; answers with Text, where it is stored
	Logout     Op = "logout"     // Account, Options
	LoginUser  Op = "login-user" // Account, Options; answers with Text
	Registries Op = "registries" // answers with Text
	Cancel     Op = "cancel"     // cancels the request with the same ID; has no answer
)

// Request is a message to the image program.
type Request struct {
	ID          int             `json:"id"`
	Op          Op              `json:"op"`
	Store       string          `json:"store,omitempty"` // directory
	Ref         string          `json:"ref,omitempty"`
	Refs        []string        `json:"refs,omitempty"`
	To          string          `json:"to,omitempty"` // the name in a registry; "": Ref
	Location    api.Location    `json:"location,omitzero"`
	Options     api.PullOptions `json:"options,omitzero"`
	SaveOptions api.SaveOptions `json:"saveOptions,omitzero"`
	Target      api.Target      `json:"target,omitzero"` // without Dir to protocol.FDImageOutput
	Account     api.Account     `json:"account,omitzero"`

	Annotations map[string]string `json:"annotations,omitempty"`
	Files       map[string][]byte `json:"files,omitempty"` // in the place of those in the directory
}

// Frame is a message from the image program.
type Frame struct {
	ID       int           `json:"id"`
	Begun    bool          `json:"begun,omitempty"` // a registry is contacted from now on
	Progress *api.Progress `json:"progress,omitempty"`
	Done     bool          `json:"done,omitempty"` // the rest is the result
	Added    []api.Added   `json:"added,omitempty"`
	Names    []string      `json:"names,omitempty"`
	Text     string        `json:"text,omitempty"`
	Error    *Error        `json:"error,omitempty"`
}

// Error is an error in a message: its text, and what the receiver reads from the chain.
type Error struct {
	Text      string       `json:"text,omitempty"`
	Hint      string       `json:"hint,omitempty"`
	Class     report.Class `json:"class,omitempty"`
	Reason    string       `json:"reason,omitempty"` // the kubelet's
	Image     string       `json:"image,omitempty"`
	Transient bool         `json:"transient,omitempty"`
	Is        []int        `json:"is,omitempty"`    // indexes of sentinels
	Parts     []*Error     `json:"parts,omitempty"` // of a joined error, which has nothing else
}

// sentinels are the errors by which callers decide.
var sentinels = []error{context.Canceled, context.DeadlineExceeded, api.ErrNotFound, api.ErrRegistryNeeded}

// EncodeError returns the form of err for the other side; nil for nil.
func EncodeError(err error) *Error {
	if err == nil {
		return nil
	}
	if parts := report.Parts(err); len(parts) > 1 {
		e := &Error{}
		for _, part := range parts {
			e.Parts = append(e.Parts, EncodeError(part))
		}
		return e
	}
	e := &Error{Text: err.Error(), Hint: report.Hint(err), Class: report.ClassOf(err)}
	if of := (*api.Error)(nil); errors.As(err, &of) {
		e.Reason, e.Image, e.Transient = of.Reason, of.Image, of.Transient
	}
	for i, s := range sentinels {
		if errors.Is(err, s) {
			e.Is = append(e.Is, i)
		}
	}
	return e
}

// Decode returns the error; nil for nil.
func (e *Error) Decode() error {
	if e == nil {
		return nil
	}
	if len(e.Parts) > 0 {
		var parts []error
		for _, part := range e.Parts {
			parts = append(parts, part.Decode())
		}
		return errors.Join(parts...)
	}
	var err error = remoteError{e}
	if e.Hint != "" || e.Class != report.Failure {
		err = &report.Error{Class: e.Class, Hint: e.Hint, Err: err}
	}
	if e.Reason != "" {
		err = &api.Error{Reason: e.Reason, Image: e.Image, Err: err, Transient: e.Transient}
	}
	return err
}

// remoteError is the cause of an error of the image program.
type remoteError struct{ of *Error }

func (e remoteError) Error() string { return e.of.Text }

func (e remoteError) Is(target error) bool {
	for _, i := range e.of.Is {
		if i < len(sentinels) && sentinels[i] == target {
			return true
		}
	}
	return false
}

// endedError returns the error of a request whose answer never comes.
func endedError(cause error) error {
	return report.New(report.Internal, "try again; its messages are above", "the image program ended: %w", cause)
}
