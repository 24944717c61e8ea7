package crilog

import (
	"bytes"
	"io"
	"os"
)

// seekTail moves f to the beginning of its last n lines. A line is what a program
// ended with a newline, so the pieces of a long one count once.
func seekTail(f *os.File, n int) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || n == 0 {
		return err
	}
	const block = 64 << 10
	var window []byte // the file from position pos on, as far as it is not counted yet
	pos, start, seen := size, size, 0
	for pos > 0 {
		step := min(pos, block)
		pos -= step
		buf := make([]byte, step, int(step)+len(window))
		if _, err := f.ReadAt(buf, pos); err != nil {
			return err
		}
		window = append(buf, window...)
		for {
			// The last newline ends the last line; the one before it is its beginning.
			begin := bytes.LastIndexByte(trimNewline(window), '\n') + 1
			if begin == 0 && pos > 0 {
				break // it begins in an earlier block
			}
			line := window[begin:]
			if len(line) == 0 {
				break
			}
			if e, err := Parse(trimNewline(line)); err != nil || !e.Partial || start == size {
				if seen == n {
					_, err := f.Seek(start, io.SeekStart)
					return err
				}
				seen++
			}
			start = pos + int64(begin)
			window = window[:begin]
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

func trimNewline(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }
