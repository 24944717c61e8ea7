package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// world is the supervisor, the kernel and the user of a scenario.
type world struct {
	plan    pod.Plan
	seen    Observed
	at      time.Duration // since the start of the pod
	manual  bool
	hangs   map[string]bool
	dies    map[string]exit
	answers map[string]outcomeFor // by container and kind of probe or hook
	due     []timed               // future deaths, in order
	last    Decision
	told    []string
}

// exit is a scheduled end of a container's runs.
type exit struct {
	code  int
	after time.Duration
}

type timed struct {
	at time.Duration
	e  Event
}

// The clocks of a scenario start at odd times, so that a zero value stands out.
const bootBegin = 1000 * time.Second

var wallBegin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (w *world) now() Now { return Now{Boot: bootBegin + w.at, Wall: wallBegin.Add(w.at)} }

// apply applies an event. An event about a container is about its latest attempt, unless args name
// another.
func (w *world) apply(e Event, args map[string]string) error {
	e.At = w.now()
	if e.Container != "" {
		e.Attempt = w.seen.container(e.Container).Attempt
	}
	for name, field := range map[string]*int{
		"attempt": &e.Attempt, "code": &e.ExitCode, "signal": &e.Signal,
	} {
		if err := number(args, name, field); err != nil {
			return err
		}
	}
	e.Reason, e.Message = args["reason"], args["message"]+e.Message
	if e.Kind == Started {
		e.ContainerID = fmt.Sprintf("%s-%d", e.Container, e.Attempt)
	}
	w.seen.Apply(&w.plan, e)
	return nil
}

func number(args map[string]string, name string, field *int) (err error) {
	if s, ok := args[name]; ok {
		*field, err = strconv.Atoi(s)
	}
	return err
}

// settle decides and carries out until nothing is due.
func (w *world) settle() {
	for rounds := 0; ; rounds++ {
		if rounds > 100 {
			panic("the decisions have no end")
		}
		w.last = Decide(&w.plan, &w.seen, w.now())
		if len(w.last.Actions) == 0 {
			return
		}
		for _, a := range w.last.Actions {
			line := string(a.Kind)
			if a.Container != "" {
				line += fmt.Sprintf(" %s#%d", a.Container, a.Attempt) + aside(a)
			}
			w.printf("%-7s %s", w.at, line)
			w.seen.Apply(&w.plan, Event{At: w.now(), Kind: Issued, Action: &a})
		}
		if !w.manual {
			for _, a := range w.last.Actions {
				w.answer(a)
			}
		}
	}
}

// answer applies the event that follows an action when all goes well.
func (w *world) answer(a Action) {
	e := Event{At: w.now(), Container: a.Container, Attempt: a.Attempt}
	switch {
	case a.Kind == CreateSandbox:
		e.Kind = SandboxReady
	case a.Kind == FreezeSandbox:
		e.Kind = Frozen
	case a.Kind == ThawSandbox:
		e.Kind = Thawed
	case a.Kind == RemoveSandbox:
		e.Kind = SandboxRemoved
	case a.Kind == StartContainer && !w.hangs[a.Container]:
		e.Kind, e.ContainerID = Started, fmt.Sprintf("%s-%d", a.Container, a.Attempt)
		if d, ok := w.dies[a.Container]; ok {
			w.due = append(w.due, timed{w.at + d.after, Event{
				Kind: Exited, Container: a.Container, Attempt: a.Attempt, ExitCode: d.code}})
		}
	case a.Kind == RunProbe, a.Kind == RunHook:
		w.answerProbeOrHook(a)
		return
	case a.Kind == KillContainer:
		e.Kind, e.Signal = Exited, 9
	default:
		return
	}
	w.seen.Apply(&w.plan, e)
}

// pass advances the time and stops at every wake and every exit.
func (w *world) pass(d time.Duration) {
	w.settle()
	for end := w.at + d; ; w.settle() {
		next, exit := end, -1
		if wake := w.last.Wake - bootBegin; w.last.Wake != 0 && wake < next {
			if wake <= w.at {
				panic("wake is not ahead")
			}
			next = wake
		}
		for i, t := range w.due {
			if t.at <= next && (exit < 0 || t.at < w.due[exit].at) {
				next, exit = t.at, i
			}
		}
		w.at = next
		if exit >= 0 {
			e := w.due[exit].e
			e.At = w.now()
			w.seen.Apply(&w.plan, e)
			w.due = append(w.due[:exit], w.due[exit+1:]...)
		} else if next == end {
			return
		}
	}
}

// step runs one line of a scenario.
func (w *world) step(words []string) (err error) {
	args, plain := map[string]string{}, []string{}
	for _, word := range words[1:] {
		if key, value, ok := strings.Cut(word, "="); ok {
			args[key] = value
		} else {
			plain = append(plain, word)
		}
	}
	plain = append(plain, "", "", "")
	if known, err := w.askStep(words[0], plain, args); known {
		return err
	}
	switch verb := words[0]; verb {
	case "pod":
		return w.begin(words[1:])
	case "exit":
		code, err := strconv.Atoi(plain[1])
		if err != nil {
			return err
		}
		return w.apply(Event{Kind: Exited, Container: plain[0], ExitCode: code, OOMKilled: plain[2] == "oom", OOMLimit: OOMLimit(args["limit"])}, args)
	case "started":
		return w.apply(Event{Kind: Started, Container: plain[0]}, args)
	case "start-failed":
		return w.apply(Event{Kind: StartFailed, Container: plain[0]}, args)
	case "sandbox", "volumes":
		kind, ok := map[string]EventKind{"ready": SandboxReady, "failed": SandboxFailed, "killed": SandboxKilled, "removed": SandboxRemoved}[plain[0]]
		if verb == "volumes" {
			kind, ok = VolumesFailed, plain[0] == "failed"
		}
		if !ok {
			return fmt.Errorf("unknown sandbox event")
		}
		return w.apply(Event{Kind: kind, Attempt: w.seen.Attempt, Message: strings.ReplaceAll(strings.TrimSpace(strings.Join(plain[1:], " ")), " / ", "\n")}, nil)
	case "stop":
		return w.stop(args)
	case "changed", "restart":
		return w.changed(plain, args, verb == "restart")
	case "deadline":
		w.plan.ActiveDeadlineSeconds, err = strconv.ParseInt(plain[0], 10, 64)
		w.seen.Apply(&w.plan, Event{At: w.now(), Kind: Replanned})
	case "pause", "unpause":
		w.seen.Apply(&w.plan, Event{At: w.now(), Kind: map[string]EventKind{"pause": PauseRequested, "unpause": UnpauseRequested}[verb]})
	case "manual", "auto":
		w.manual = verb == "manual"
	case "hang":
		w.hangs[plain[0]] = true
	case "dies":
		d := exit{}
		if d.code, err = strconv.Atoi(plain[1]); err == nil {
			d.after, err = time.ParseDuration(plain[2])
		}
		w.dies[plain[0]] = d
		return err
	case "measured":
		return w.measured(plain[0], args)
	case "status", "conditions", "events":
		w.show(verb)
	default:
		d, err := time.ParseDuration(verb)
		if err != nil || !strings.HasPrefix(verb, "+") {
			return fmt.Errorf("unknown step")
		}
		w.pass(d)
	}
	return nil
}

func (w *world) stop(args map[string]string) error {
	grace, err := graceOf(args)
	if err != nil {
		return err
	}
	e := Event{At: w.now(), Kind: StopRequested, GraceSeconds: grace}
	if reason, ok := args["for"]; ok {
		e.Reason = reason
	}
	w.seen.Apply(&w.plan, e)
	return nil
}

// graceOf returns the grace period that a step names, or nil.
func graceOf(args map[string]string) (*int64, error) {
	text, set := args["grace"]
	if !set {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return &n, err
}

// changed gives containers another revision.
func (w *world) changed(names []string, args map[string]string, restart bool) error {
	grace, err := graceOf(args)
	if err != nil {
		return err
	}
	for _, list := range [][]pod.Container{w.plan.InitContainers, w.plan.Containers} {
		for i := range list {
			if slices.Contains(names, list[i].Name) {
				list[i].Revision, list[i].RestartRequested, list[i].RestartGraceSeconds = list[i].Revision+1, restart, grace
				if !restart {
					list[i].Image = fmt.Sprintf("%s:%d", firstImage, list[i].Revision)
				}
			}
		}
	}
	w.seen.Apply(&w.plan, Event{At: w.now(), Kind: Replanned})
	return nil
}

func (w *world) measured(bytes string, args map[string]string) (err error) {
	e := Event{At: w.now(), Kind: StorageMeasured, Message: args["over"]}
	if e.Bytes, err = strconv.ParseInt(bytes, 10, 64); err != nil {
		return err
	}
	if took, ok := args["took"]; ok {
		if e.Took, err = time.ParseDuration(took); err != nil {
			return err
		}
	}
	w.seen.Apply(&w.plan, e)
	return nil
}

// firstImage is the image of every container until it is changed.
const firstImage = "busybox"

// begin creates the pod of a scenario.
func (w *world) begin(words []string) (err error) {
	w.hangs, w.dies, w.answers = map[string]bool{}, map[string]exit{}, map[string]outcomeFor{}
	w.plan = pod.Plan{Name: "web", Namespace: "default", UID: "u-1",
		RestartPolicy: pod.RestartAlways, GraceSeconds: 30}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		value, with, _ := strings.Cut(value, "/")
		c := pod.Container{Name: value, Image: firstImage, Sidecar: key == "sidecar"}
		if with != "" {
			err = outfit(&c, strings.Split(with, "/"))
		}
		switch key {
		case "restart":
			w.plan.RestartPolicy = pod.RestartPolicy(value)
		case "grace":
			w.plan.GraceSeconds, err = strconv.ParseInt(value, 10, 64)
		case "deadline":
			w.plan.ActiveDeadlineSeconds, err = strconv.ParseInt(value, 10, 64)
		case "storage":
			w.plan.Storage = []pod.Limit{{Kind: pod.PodLimit, Bytes: 500}}
		case "gate":
			w.plan.ReadinessGates = append(w.plan.ReadinessGates, value)
		case "hookReason":
			w.plan.HookReason = true
		case "init", "sidecar":
			w.plan.InitContainers = append(w.plan.InitContainers, c)
		case "app":
			w.plan.Containers = append(w.plan.Containers, c)
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
