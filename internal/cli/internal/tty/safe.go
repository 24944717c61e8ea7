package tty

import (
	"bytes"

	"github.com/podrun/podrun/internal/report"
)

// Safe escapes one line of a program's output for a terminal. Colours and tabs stay. All other control
// characters and sequences are spelled out, so that a container can neither overwrite the screen nor send
// commands to the terminal. A line that sets a colour ends with Reset.
func Safe(line []byte) []byte {
	out, coloured := spell(line, true)
	if coloured {
		out = append(out, Reset...)
	}
	return out
}

// Plain is Safe without colours.
func Plain(line []byte) []byte {
	out, _ := spell(line, false)
	return out
}

// spell spells out control characters and sequences. It keeps or removes colours.
func spell(line []byte, colours bool) (out []byte, coloured bool) {
	line = bytes.TrimSuffix(line, []byte("\r")) // a program that writes CR LF
	if !bytes.ContainsFunc(line, suspicious) {
		return line, false
	}
	for len(line) > 0 {
		if n := sgr(line); n > 0 {
			if colours {
				out, coloured = append(out, line[:n]...), true
			}
			line = line[n:]
			continue
		}
		if line[0] == '\t' {
			out, line = append(out, '\t'), line[1:]
			continue
		}
		n := 1
		for n < len(line) && line[n] != '\t' && line[n] != '\x1b' {
			n++
		}
		out, line = append(out, report.Escape(string(line[:n]))...), line[n:]
	}
	return out, coloured
}

func suspicious(r rune) bool { return r < 0x20 || r >= 0x7f }

// sgr returns the length of the "select graphic rendition" sequence at the start of b, or 0.
func sgr(b []byte) int {
	if !bytes.HasPrefix(b, []byte("\x1b[")) {
		return 0
	}
	for i := 2; i < len(b) && i < 32; i++ {
		switch c := b[i]; {
		case c == 'm':
			return i + 1
		case (c < '0' || c > '9') && c != ';' && c != ':':
			return 0
		}
	}
	return 0
}
