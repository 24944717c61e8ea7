package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	Report  SetReport   `json:"report,omitzero"`
	State   SetState    `json:"state"`
	Boot    string      `json:"boot"`              // boot id of the boot in which its pods were started last
	Current *SetVersion `json:"current,omitempty"` // the last version that was ready; nil if there was none
	Next    *SetVersion `json:"next,omitempty"`    // the version that is tried, or was; nil if the set is settled
	Former  *SetVersion `json:"former,omitempty"`  // the version before Current

	Interrupted SetInterrupted    `json:"interrupted,omitzero"` // the last version whose trial was interrupted
	Reason      string            `json:"reason,omitempty"`     // of SetReturning: why Next failed
	Rejected    []SetReject       `json:"rejected,omitempty"`   // newest last
	History     []SetChange       `json:"history,omitempty"`    // newest last
	Retag       map[string]string `json:"retag,omitempty"`      // ids of images whose names are being moved to them, by their references
}

// SetReport is where podrun follow reports how changes have ended.
type SetReport struct {
	URL     string `json:"url"`               // "": nowhere
	KeyFile string `json:"keyFile,omitempty"` // with the key of the signature
}

// SetVersion is one version of a set. A set of podrun update has pods whose manifests stay the same: its versions differ in
// Pins.
type SetVersion struct {
	ID       string    `json:"id"`      // SHA-256 of its manifests, hexadecimal
	Digest   string    `json:"digest"`  // sha256:<hex> of the artifact, or of the files
	Inputs   string    `json:"inputs"`  // SHA-256 of what the machine adds: variables, path, namespace
	Created  time.Time `json:"created"` // by the artifact's annotation; zero if it has none
	Revision string    `json:"revision,omitempty"`
	Version  string    `json:"version,omitempty"`

	Members []SetMember `json:"members"`          // what the set has made
	Images  []string    `json:"images,omitempty"` // ids

	Policy        string   `json:"policy,omitempty"`        // --policy with which it was admitted
	UnsafeSysctls []string `json:"unsafeSysctls,omitempty"` // --allow-unsafe-sysctl
	RequireLimits bool     `json:"requireLimits,omitempty"`

	Pins    map[string]string `json:"pins,omitempty"`    // ids of images, by the references in the manifests
	Digests map[string]string `json:"digests,omitempty"` // of these images in their registries, where that is known
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

// Reject records that a version is not tried again unless someone asks for it. If the versions of the set are images,
// only an image that differs from the other version's is rejected, and of each name only the last one.
func (s *Set) Reject(v, than *SetVersion, reason string, now time.Time) {
	if v.Pins != nil && than != nil {
		s.Rejected = slices.DeleteFunc(s.Rejected, func(r SetReject) bool { return v.Pins[r.Inputs] != than.Pins[r.Inputs] })
	}
	for _, r := range v.rejects() {
		if than != nil && v.Pins != nil && (than.Pins[r.Inputs] == r.Digest || than.Digests[r.Inputs] == r.Digest) {
			continue
		}
		r.Reason, r.At = reason, now
		s.accept(r)
		s.Rejected = append(s.Rejected, r)
	}
	s.Rejected = s.Rejected[max(0, len(s.Rejected)-maxSetHistory):]
}

// Accept removes what Reject has recorded of a version.
func (s *Set) Accept(v *SetVersion) {
	for _, r := range v.rejects() {
		s.accept(r)
	}
}

func (s *Set) accept(r SetReject) {
	s.Rejected = slices.DeleteFunc(s.Rejected, func(old SetReject) bool { return old.Digest == r.Digest && old.Inputs == r.Inputs })
}

// rejects returns what Reject records of a version: its digest, or the ids and the digests of its images.
func (v *SetVersion) rejects() (list []SetReject) {
	if v.Pins == nil {
		return []SetReject{{Digest: v.Digest, Inputs: v.Inputs}}
	}
	for _, images := range []map[string]string{v.Pins, v.Digests} {
		for ref, id := range images {
			if id != "" {
				list = append(list, SetReject{Digest: id, Inputs: ref})
			}
		}
	}
	return list
}

// RejectOf returns why a version is not tried again; nil if it may be tried. A version of an image has the id or the digest
// of the image, and its reference in the place of inputs.
func (s *Set) RejectOf(digest, inputs string) *SetReject {
	i := slices.IndexFunc(s.Rejected, func(r SetReject) bool { return r.Digest == digest && r.Inputs == inputs })
	if i < 0 {
		return nil
	}
	return &s.Rejected[i]
}

// LastResult returns how the last change has ended; "" if there was none.
func (s *Set) LastResult() SetResult {
	if len(s.History) == 0 {
		return ""
	}
	return s.History[len(s.History)-1].Result
}

// HasGoneBack reports whether the last change has ended with the version before it.
func (s *Set) HasGoneBack() bool {
	return s.LastResult() == SetFailed || s.LastResult() == SetRolledBack
}

// AddHistory adds a change to the history.
func (s *Set) AddHistory(c SetChange) {
	s.History = append(s.History, c)
	s.History = s.History[max(0, len(s.History)-maxSetHistory):]
}

// Members returns what the set has made: of its current version, and of the one that it tries.
func (s *Set) Members() (list []SetMember) {
	for _, v := range []*SetVersion{s.Current, s.Next} {
		if v == nil {
			continue
		}
		for _, m := range v.Members {
			if !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	return list
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
		ids = slices.AppendSeq(ids, maps.Values(v.Pins))
	}
	return ids
}

const setFile = "set.json"

func (d Dirs) setsDir() string { return filepath.Join(d.Data, "sets") }

// Sets of podrun update have names with slashes, and directories of their own.
const podSets, unitSets = "pod", "unit"

// PodSet returns the name of the set with which podrun update changes the images of a pod.
func PodSet(p Pod) string { return podSets + "/" + p.Namespace + "/" + p.Name }

// UnitSet returns the name of the set with which podrun update changes the images of a unit's pods.
func UnitSet(unit string) string { return unitSets + "/" + unit }

func (d Dirs) setDir(name string) (string, error) {
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if !isSafeName(part) {
			return "", fmt.Errorf("%q: %w of a set", name, ErrBadName)
		}
	}
	switch {
	case len(parts) == 1:
		return filepath.Join(d.setsDir(), name), nil
	case len(parts) == 3 && parts[0] == podSets || len(parts) == 2 && parts[0] == unitSets:
		return filepath.Join(d.Data, "updates", name), nil
	}
	return "", fmt.Errorf("%q: %w of a set", name, ErrBadName)
}

// UpdateSets returns the names of the sets of podrun update.
func (d Dirs) UpdateSets() (list []string, err error) {
	root := filepath.Join(d.Data, "updates")
	for _, pattern := range []string{podSets + "/*/*/", unitSets + "/*/"} {
		files, err := filepath.Glob(filepath.Join(root, pattern, setFile))
		if err != nil {
			return nil, fmt.Errorf("list updates: %w", err)
		}
		for _, file := range files {
			list = append(list, strings.TrimPrefix(filepath.Dir(file), root+"/"))
		}
	}
	return list, nil
}

// UpdateOf returns the set with which podrun update has changed the images of a pod last; nil if there is none.
func (d Dirs) UpdateOf(p Pod) (name string, s *Set, err error) {
	name = PodSet(p)
	if s, err = d.Set(name); s != nil || err != nil {
		return name, s, err
	}
	units, err := names(filepath.Join(d.Data, "updates", unitSets))
	if err != nil {
		return "", nil, fmt.Errorf("list updates: %w", err)
	}
	for _, unit := range units {
		s, err := d.Set(UnitSet(unit))
		if err != nil {
			return "", nil, err
		}
		if s != nil && s.Current != nil && slices.Contains(s.Current.Members, SetMember{Namespace: p.Namespace, Name: p.Name}) {
			return UnitSet(unit), s, nil
		}
	}
	return "", nil, nil
}

// RemoveUpdate removes the record of a pod's updates, if there is one.
func (d Dirs) RemoveUpdate(p Pod) error {
	name, s, err := d.UpdateOf(p)
	if err != nil || s == nil {
		return err
	}
	return d.RemoveSet(name)
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
	return errors.Join(SyncDir(filepath.Dir(dir)), SyncDir(d.Data))
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
	if err := makeDirs(filepath.Dir(dir)); err != nil {
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
