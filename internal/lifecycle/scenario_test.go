package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/golden"
)

// TestScenarios runs the scenarios in testdata, one file each. A scenario is a list of blocks: steps, one
// a line, then a line "----", then the output, up to an empty line. The supervisor decides and carries
// out after each line; steps on one line, separated by "; ", are applied before the next decision.
// Lines that begin with # are comments.
//
// Steps:
//
//	pod [restart=P] [grace=N] [deadline=N] [storage=N] [gate=TYPE] [hookReason] [init=NAME] [sidecar=NAME] [app=NAME]…
//	                           a new pod, at 0s, its containers in this order; after a
//	                           NAME: /liveness /readiness /startup with
//	                           :delay=N,period=N,success=N,failure=N,grace=N,
//	                           /postStart /preStop with :sleep=N, /priority:is=N,
//	                           /restart:policy=P,max=N /in /notIn with :codes=N+N…
//	+DURATION                  time passes, with a decision at every wake
//	exit NAME CODE [oom] [limit=L] [signal=N] [attempt=N] [message=TEXT]
//	started NAME | start-failed NAME [code=N] [reason=R] [message=TEXT]
//	sandbox ready | failed [TEXT] | killed [TEXT] | removed
//	volumes failed TEXT
//	stop [grace=N]
//	measured BYTES [over=TEXT] [took=D]
//	answers NAME KIND OUTCOME|hang [message=TEXT]
//	                           how probes or hooks of this kind are answered from now on
//	probed NAME KIND OUTCOME | hooked NAME KIND OUTCOME
//	condition TYPE STATUS      a user sets a condition
//	recovered                  another supervisor recovers the pod
//	pause | unpause            a user pauses or resumes the pod
//	changed NAME… the plan has another revision of these containers, with another image
//	restart NAME… [grace=N]    the same, because a user requests a restart
//	deadline N                 the plan has another activeDeadlineSeconds
//	manual | auto              whether actions are answered by themselves
//	hang NAME                  starts of this container are not answered
//	dies NAME CODE AFTER       runs of this container end by themselves
//	status | conditions | events   add details about this moment to the output
//
// Actions that are neither manual nor hanging are answered at once: sandboxes are made, containers
// start, probes and hooks succeed, KILL kills. Only exit answers a stop signal.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := runScenario(string(want))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			golden.Check(t, file, got)
		})
	}
}

// runScenario runs a scenario and returns it with its outputs.
func runScenario(text string) (string, error) {
	var out strings.Builder
	var w *world
	var steps []string
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line != "----" {
			out.WriteString(line + "\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				steps = append(steps, line)
			}
			continue
		}
		for i+1 < len(lines) && lines[i+1] != "" {
			i++ // skip the output of an earlier run
		}
		var err error
		if w, err = runBlock(w, steps); err != nil {
			return "", fmt.Errorf("line %d: %w", i+1, err)
		}
		out.WriteString("----\n" + w.output())
		steps = nil
	}
	if len(steps) > 0 {
		return "", fmt.Errorf("steps without ----: %q", steps)
	}
	return out.String(), nil
}

func runBlock(w *world, lines []string) (*world, error) {
	if len(lines) == 0 {
		return nil, fmt.Errorf("no steps")
	}
	for _, line := range lines {
		for _, step := range strings.Split(line, "; ") {
			words := strings.Fields(step)
			if words[0] == "pod" {
				w = &world{}
			}
			if w == nil {
				return nil, fmt.Errorf("%q before the pod", step)
			}
			if err := w.step(words); err != nil {
				return nil, fmt.Errorf("%q: %w", step, err)
			}
		}
		w.settle()
	}
	return w, nil
}
