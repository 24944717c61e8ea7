package runner

import (
	"errors"
	"strings"

	"github.com/podrun/podrun/internal/stage/trampoline"
)

// plain leaves out of libcontainer's error what whoever shows it says in other
// words: that a process could not be started.
func plain(err error) error {
	return errors.New(strings.NewReplacer("unable to start container process: ", "", "error during container init: ", "").Replace(err.Error()))
}

// exitCodeOf tells "no such program" and "cannot be executed". The trampoline's error knows;
// libcontainer's reaches us as text.
func exitCodeOf(err error) int {
	var bounced *trampoline.StartError
	if errors.As(err, &bounced) {
		return bounced.Code()
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "executable file not found") || strings.Contains(text, "no such file or directory"):
		return 127
	case strings.Contains(text, "permission denied") || strings.Contains(text, "is a directory") || strings.Contains(text, "exec format error"):
		return 126
	}
	return 128
}
