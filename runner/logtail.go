package runner

import (
	"bytes"
	"strings"
)

// The end of a log that stands in for a termination message: kubelet
// MaxContainerTerminationMessageLogLength and …LogLines.
const (
	maxLogTail      = 2048
	maxLogTailLines = 80
)

// logTail is the text of the last lines of a log, without what cannot be read.
func logTail(path string) string {
	raw, err := tail(path, 4*maxLogTail)
	if err != nil {
		return ""
	}
	var texts [][]byte
	for line := range bytes.Lines([]byte(raw)) {
		// time stream tag text
		if f := bytes.SplitN(line, []byte{' '}, 4); len(f) == 4 {
			texts = append(texts, f[3])
		}
	}
	texts = texts[max(0, len(texts)-maxLogTailLines):]
	text := bytes.Join(texts, nil)
	text = text[max(0, len(text)-maxLogTail):]
	return strings.ToValidUTF8(string(text), "")
}
