package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// SetState is the progress of a set's change.
type SetState string

const (
	SetSettled   SetState = "settled"   // the current version is applied, or there is none
	SetTrying    SetState = "trying"    // the next version is being applied and watched
	SetReturning SetState = "returning" // the current version is being applied again
)

// Set is the record of a set: pods and objects that are changed together, or not at all. Each version's manifests are in
// a file of their own.
type Set struct {
	Source  string      `json:"source"` // as the user has named it
	State   SetState    `json:"state"`
	Boot    string      `json:"boot"`              // boot id of the boot in which its pods were started last
	Current *SetVersion `json:"current,omitempty"` // the last version that was ready; nil if there was none
	Next    *SetVersion `json:"next,omitempty"`    // the version that is tried, or was; nil if the set is settled
	Former  *SetVersion `json:"former,omitempty"`  // the version before Current

	Interrupted SetInterrupted `json:"interrupted,omitzero"` // the last version whose trial was interrupted
	Reason      string         `json:"reason,omitempty"`     // of SetReturning: why Next failed
	Rejected    []SetReject    `json:"rejected,omitempty"`   // newest last
	History     []SetChange    `json:"history,omitempty"`    // newest last
}

// SetVersion is one version of a set.
type SetVersion struct {
	ID       string    `json:"id"`      // SHA-256 of its manifests, hexadecimal
	Digest   string    `json:"digest"`  // sha256:<hex> of the artifact, or of the files
	Inputs   string    `json:"inputs"`  // SHA-256 of what the machine adds: variables, path, namespace
	Created  time.Time `json:"created"` // by the artifact's annotation; zero if it has none
	Revision string    `json:"revision,omitempty"`
	Version  string    `json:"version,omitempty"`

	Members []SetMember `json:"members"`          // what the set has made
	Images  []string    `json:"images,omitempty"` // ids
}

// SetInterrupted counts the trials of a version that were interrupted by a power cut or a kill.
type SetInterrupted struct {
	ID    string `json:"id"`
	Times int    `json:"times"`
}

// SetMember is a pod or an object of a set. The kind of a pod is "".
type SetMember struct {
	Kind      pod.ObjectKind `json:"kind,omitempty"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
}

// String returns a member's name for messages: pod/web.
func (m SetMember) String() string {
	if m.Kind == "" {
		return "pod/" + m.Name
	}
	return strings.ToLower(string(m.Kind)) + "/" + m.Name
}

// SetReject is a version that is not tried again unless someone asks for it.
type SetReject struct {
	Digest string    `json:"digest"`
	Inputs string    `json:"inputs"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// SetChange is an entry of a set's history.
type SetChange struct {
	At       time.Time `json:"at"`
	Result   SetResult `json:"result"`
	Digest   string    `json:"digest"`
	Revision string    `json:"revision,omitempty"`
	Version  string    `json:"version,omitempty"`
	Reason   string    `json:"reason,omitempty"` // of a failure
	Former   string    `json:"former,omitempty"` // the digest of the version before it
}

// SetResult is how a change of a set has ended.
type SetResult string

const (
	SetApplied    SetResult = "applied"     // the version is ready
	SetRolledBack SetResult = "rolled back" // by hand; the version is ready
	SetFailed     SetResult = "failed"      // the set is back at the former version
)

// maxSetHistory is how many changes, and rejected versions, a record keeps.
const maxSetHistory = 20

// Reject records that a version is not tried again unless someone asks for it.
func (s *Set) Reject(v *SetVersion, reason string, now time.Time) {
	s.Accept(v)
	s.Rejected = append(s.Rejected, SetReject{Digest: v.Digest, Inputs: v.Inputs, Reason: reason, At: now})
	s.Rejected = s.Rejected[max(0, len(s.Rejected)-maxSetHistory):]
}

// Accept removes what Reject has recorded of a version.
func (s *Set) Accept(v *SetVersion) {
	s.Rejected = slices.DeleteFunc(s.Rejected, func(r SetReject) bool { return r.Digest == v.Digest && r.Inputs == v.Inputs })
}

// RejectOf returns why a version is not tried again; nil if it may be tried.
func (s *Set) RejectOf(digest, inputs string) *SetReject {
	i := slices.IndexFunc(s.Rejected, func(r SetReject) bool { return r.Digest == digest && r.Inputs == inputs })
	if i < 0 {
		return nil
	}
	return &s.Rejected[i]
}

// AddHistory adds a change to the history.
func (s *Set) AddHistory(c SetChange) {
	s.History = append(s.History, c)
	s.History = s.History[max(0, len(s.History)-maxSetHistory):]
}

// versions returns the versions whose manifests are kept.
func (s *Set) versions() (list []*SetVersion) {
	for _, v := range []*SetVersion{s.Current, s.Next, s.Former} {
		if v != nil {
			list = append(list, v)
		}
	}
	return list
}

// Images returns the ids of the images of all versions that are kept.
func (s *Set) Images() (ids []string) {
	for _, v := range s.versions() {
		ids = append(ids, v.Images...)
	}
	return ids
}

const setFile = "set.json"

func (d Dirs) setsDir() string { return filepath.Join(d.Data, "sets") }

func (d Dirs) setDir(name string) (string, error) {
	if !isSafeName(name) {
		return "", fmt.Errorf("%q: %w of a set", name, ErrBadName)
	}
	return filepath.Join(d.setsDir(), name), nil
}

// Set reads the record of a set; nil if there is none.
func (d Dirs) Set(name string) (*Set, error) {
	dir, err := d.setDir(name)
	if err != nil {
		return nil, err
	}
	s := new(Set)
	switch err := readJSON(filepath.Join(dir, setFile), s); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record of set %s: %w", name, err)
	}
	return s, nil
}

// Sets returns the names of all sets, sorted.
func (d Dirs) Sets() ([]string, error) {
	list, err := names(d.setsDir())
	if err != nil {
		return nil, fmt.Errorf("list sets: %w", err)
	}
	return slices.DeleteFunc(list, func(name string) bool {
		_, err := os.Stat(filepath.Join(d.setsDir(), name, setFile))
		return err != nil
	}), nil
}

// SetDirs returns the existing directories that change when sets do.
func (d Dirs) SetDirs() ([]string, error) {
	list, err := filepath.Glob(filepath.Join(d.setsDir(), "*"))
	if err != nil {
		return nil, fmt.Errorf("watch sets: %w", err)
	}
	list = append([]string{d.setsDir()}, list...)
	return slices.DeleteFunc(list, func(dir string) bool { return !isDir(dir) }), nil
}

// WriteSet records a set, durably.
func (d Dirs) WriteSet(name string, s *Set) error {
	dir, err := d.setDir(name)
	if err == nil {
		err = d.makeSetDir(dir)
	}
	if err == nil {
		err = writeJSON(WriteFile, filepath.Join(dir, setFile), s)
	}
	if err != nil {
		return fmt.Errorf("record set %s: %w", name, err)
	}
	return nil
}

func (d Dirs) makeSetDir(dir string) error {
	if isDir(dir) {
		return nil
	}
	if err := makeDirs(dir); err != nil {
		return err
	}
	return errors.Join(SyncDir(d.setsDir()), SyncDir(d.Data))
}

// WriteSetManifests stores the manifests of a version, durably, before a record names the version.
func (d Dirs) WriteSetManifests(name, version string, text []byte) error {
	dir, err := d.setDir(name)
	if err == nil {
		err = d.makeSetDir(dir)
	}
	if err == nil {
		err = WriteFile(filepath.Join(dir, version), text)
	}
	if err != nil {
		return fmt.Errorf("record the manifests of set %s: %w", name, err)
	}
	return nil
}

// SetManifests reads the manifests of a version.
func (d Dirs) SetManifests(name, version string) ([]byte, error) {
	dir, err := d.setDir(name)
	var text []byte
	if err == nil {
		text, err = os.ReadFile(filepath.Join(dir, version))
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifests of set %s: %w", name, err)
	}
	return text, nil
}

// PruneSetManifests removes the manifests of versions that the record does not name.
func (d Dirs) PruneSetManifests(name string, s *Set) error {
	dir, err := d.setDir(name)
	if err != nil {
		return err
	}
	files, err := names(dir)
	if err != nil {
		return fmt.Errorf("list the versions of set %s: %w", name, err)
	}
	for _, file := range files {
		if file == setFile || slices.ContainsFunc(s.versions(), func(v *SetVersion) bool { return v.ID == file }) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a version of set %s: %w", name, err)
		}
	}
	return nil
}

// RemoveSet removes the record of a set, with its manifests.
func (d Dirs) RemoveSet(name string) error {
	dir, err := d.setDir(name)
	if err != nil {
		return err
	}
	if err = os.Remove(filepath.Join(dir, setFile)); err == nil { // first: without it there is no set
		err = SyncDir(dir)
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("remove the record of set %s: %w", name, err)
	}
	return nil
}

// LockSet opens the lock of the process that changes a set. It is on disk, as the record is: processes of other login
// sessions find it, too.
func (d Dirs) LockSet(name string) (*FileLock, error) {
	dir, err := d.setDir(name)
	if err != nil {
		return nil, err
	}
	if err := makeDirs(d.setsDir()); err != nil {
		return nil, fmt.Errorf("lock set %s: %w", name, err)
	}
	return OpenFileLock(dir + ".lock")
}

// SetChanging reports whether a process changes a set now.
func (d Dirs) SetChanging(name string) bool {
	lock, err := d.LockSet(name)
	if err != nil {
		return false
	}
	defer lock.Close()
	held, err := lock.Held()
	return err == nil && held
}
