package crilog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// segmentFile is one file of an instance's log. Rotated files are numbered from 1 on, in the order
// in which they were written; segment 0 is being written.
type segmentFile struct{ attempt, segment int }

// name returns "3.log", or "3.log.2" for a rotated file.
func (p segmentFile) name() string {
	name := strconv.Itoa(p.attempt) + ".log"
	if p.segment > 0 {
		name += "." + strconv.Itoa(p.segment)
	}
	return name
}

// parseSegmentFile is the inverse of name. It rejects names of other files.
func parseSegmentFile(name string) (p segmentFile, ok bool) {
	number, segment, ok := strings.Cut(name, ".log")
	if !ok {
		return segmentFile{}, false
	}
	var err1, err2 error
	p.attempt, err1 = strconv.Atoi(number)
	if segment != "" {
		p.segment, err2 = strconv.Atoi(strings.TrimPrefix(segment, "."))
	}
	return p, err1 == nil && err2 == nil && p.attempt >= 0 && p.name() == name
}

// listing maps each attempt in a log directory to its rotated segments, in order. An attempt
// without rotation has none.
type listing map[int][]int

// readListing reads a directory. A missing directory is empty.
func readListing(dir string) (listing, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	l := listing{}
	for _, f := range files {
		p, ok := parseSegmentFile(f.Name())
		switch {
		case !ok:
		case p.segment > 0:
			l[p.attempt] = append(l[p.attempt], p.segment)
		default:
			if _, ok := l[p.attempt]; !ok {
				l[p.attempt] = nil
			}
		}
	}
	for _, segments := range l {
		slices.Sort(segments)
	}
	return l, nil
}

// attempts returns the attempts that have a log, in order.
func (l listing) attempts() []int {
	all := make([]int, 0, len(l))
	for n := range l {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// last returns the newest rotated segment of an attempt, or 0.
func (l listing) last(attempt int) int {
	if s := l[attempt]; len(s) > 0 {
		return s[len(s)-1]
	}
	return 0
}

// Attempts returns the attempts that have a log in dir, in order. A missing directory has none.
func Attempts(dir string) ([]int, error) {
	l, err := readListing(dir)
	if err != nil || len(l) == 0 {
		return nil, err
	}
	return l.attempts(), nil
}
