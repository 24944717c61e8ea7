package tty

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DefaultDetachKeys are the same as podman's and docker's.
const DefaultDetachKeys = "ctrl-p,ctrl-q"

// ErrDetached is the error of a Detachable after the user has typed its keys.
var ErrDetached = errors.New("detached by its keys")

// ParseKeys parses a sequence of keys in the form of podman and docker: letters, or ctrl- and a letter or
// one of @ [ \ ] ^ _, separated by commas. The empty text is no sequence.
func ParseKeys(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	var keys []byte
	for word := range strings.SplitSeq(text, ",") {
		key := strings.TrimPrefix(word, "ctrl-")
		if len(key) != 1 {
			return nil, fmt.Errorf("%q is not a key: use a letter, or ctrl- and a letter or one of @ [ \\ ] ^ _", word)
		}
		c := key[0]
		if key != word {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			if c < '@' || c > '_' {
				return nil, fmt.Errorf("%q is not a key: ctrl- requires a letter or one of @ [ \\ ] ^ _", word)
			}
			c -= '@'
		}
		keys = append(keys, c)
	}
	return keys, nil
}

// Detachable reads terminal input up to a sequence of keys, where it ends with ErrDetached. It holds back
// input that may be the beginning of the sequence.
type Detachable struct {
	in   io.Reader
	keys []byte
	held int    // how many of the keys were typed
	out  []byte // returned next
	err  error
}

// NewDetachable reads from in; without keys it ends only when in does.
func NewDetachable(in io.Reader, keys []byte) *Detachable { return &Detachable{in: in, keys: keys} }

func (d *Detachable) Read(b []byte) (int, error) {
	buf := make([]byte, len(b))
	for len(d.out) == 0 && d.err == nil {
		n, err := d.in.Read(buf)
		d.err = err
		d.take(buf[:n])
		if err != nil && !errors.Is(d.err, ErrDetached) {
			d.out = append(d.out, d.keys[:d.held]...)
		}
	}
	n := copy(b, d.out)
	d.out = d.out[n:]
	if len(d.out) > 0 {
		return n, nil
	}
	return n, d.err
}

// take processes input up to the end of the keys.
func (d *Detachable) take(typed []byte) {
	if len(d.keys) == 0 {
		d.out = append(d.out, typed...)
		return
	}
	for _, c := range typed {
		for d.held > 0 && c != d.keys[d.held] {
			// Continue with the longest suffix of the held input that is a prefix of the keys.
			next := d.held - 1
			for next > 0 && !bytes.Equal(d.keys[d.held-next:d.held], d.keys[:next]) {
				next--
			}
			d.out = append(d.out, d.keys[:d.held-next]...)
			d.held = next
		}
		if c != d.keys[d.held] {
			d.out = append(d.out, c)
			continue
		}
		if d.held++; d.held == len(d.keys) {
			d.err, d.held = ErrDetached, 0
			return
		}
	}
}
