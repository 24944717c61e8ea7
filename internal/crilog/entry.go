// Package crilog reads and writes container logs in the format of the Kubernetes
// container runtime interface (CRI): one file per instance of a container, named
// <attempt>.log, and those that were rotated, <attempt>.log.1 being the oldest. One
// entry per line:
//
//	2026-10-06T00:17:09.669794202Z stdout F the text
//	2026-10-06T00:17:10.113242941Z stderr P a piece of a longer
package crilog

import (
	"bytes"
	"fmt"
	"time"
)

// Entry is one line of a log file. Its slices are valid until the next one is read.
type Entry struct {
	Time    []byte // RFC 3339 with nanoseconds, as it was written
	Stream  string // "stdout" or "stderr"
	Partial bool   // the text continues in the stream's next entry
	Text    []byte // without a newline
}

// parse parses a line of a log file, without its newline.
func parse(line []byte) (Entry, error) {
	time, rest, ok1 := bytes.Cut(line, []byte(" "))
	stream, rest, ok2 := bytes.Cut(rest, []byte(" "))
	tags, text, ok3 := bytes.Cut(rest, []byte(" "))
	if !ok1 || !ok2 || !ok3 || len(time) < len("2006-01-02T15:04:05Z") {
		return Entry{}, fmt.Errorf("parse log entry: %.80q has no time, stream and tag", line)
	}
	e := Entry{Time: time, Text: text}
	switch string(stream) {
	case "stdout":
		e.Stream = "stdout"
	case "stderr":
		e.Stream = "stderr"
	default:
		return Entry{}, fmt.Errorf("parse log entry: %.20q is not a stream", stream)
	}
	switch tag, _, _ := bytes.Cut(tags, []byte(":")); string(tag) {
	case "F":
	case "P":
		e.Partial = true
	default:
		return Entry{}, fmt.Errorf("parse log entry: %.20q is not a tag", tags)
	}
	return e, nil
}

// FormatTime formats the time of an entry.
func FormatTime(moment time.Time) []byte {
	return moment.UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000000Z07:00")
}

// Append appends an entry to out, in the format that parse reads.
func Append(out, stamp []byte, stream string, partial bool, text []byte) []byte {
	out = append(append(append(append(out, stamp...), ' '), stream...), ' ', 'F', ' ')
	if partial {
		out[len(out)-2] = 'P'
	}
	return append(append(out, text...), '\n')
}
