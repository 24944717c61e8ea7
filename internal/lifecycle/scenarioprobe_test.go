package lifecycle

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/podrun/podrun/internal/pod"
)

// outcomeFor describes how a container's probes or hooks of a kind are answered.
type outcomeFor struct {
	outcome Outcome
	message string
}

func (w *world) askStep(verb string, plain []string, args map[string]string) (known bool, err error) {
	switch verb {
	case "answers":
		w.answers[plain[0]+" "+plain[1]] = outcomeFor{Outcome(plain[2]), args["message"]}
	case "probed":
		return true, w.apply(Event{Kind: Probed, Container: plain[0], Probe: ProbeKind(plain[1]), Outcome: Outcome(plain[2])}, args)
	case "hooked":
		return true, w.apply(Event{Kind: Hooked, Container: plain[0], Hook: HookKind(plain[1]), Outcome: Outcome(plain[2])}, args)
	case "condition":
		return true, w.apply(Event{Kind: ConditionSet, Condition: plain[0], Status: plain[1]}, args)
	case "object":
		return true, w.apply(Event{Kind: ObjectChanged}, args)
	case "recovered":
		seed, _ := strconv.ParseUint(args["seed"], 10, 64)
		return true, w.apply(Event{Kind: Recovered, Seed: seed}, args)
	case "restored":
		code, err := strconv.Atoi(plain[1])
		if err != nil {
			return true, err
		}
		e := Event{At: w.now(), Kind: Restored, Container: plain[0], ExitCode: code, Reason: args["reason"]}
		err = number(args, "attempt", &e.Attempt)
		w.seen.Apply(&w.plan, e)
		return true, err
	default:
		return false, nil
	}
	return true, nil
}

// answerProbeOrHook answers a probe or a hook, unless it hangs.
func (w *world) answerProbeOrHook(a Action) {
	kind, as := string(a.Probe), Probed
	if a.Kind == RunHook {
		kind, as = string(a.Hook), Hooked
		if c, ok := w.plan.Container(a.Container); ok && PlannedHook(c, a.Hook).SleepSeconds != nil {
			w.due = append(w.due, timed{w.at + seconds(*PlannedHook(c, a.Hook).SleepSeconds),
				Event{Kind: Hooked, Container: a.Container, Attempt: a.Attempt, Hook: a.Hook, Outcome: Success}})
			return
		}
	}
	how, ok := w.answers[a.Container+" "+kind]
	if !ok {
		how.outcome = Success
	}
	if how.outcome != "hang" {
		w.seen.Apply(&w.plan, Event{At: w.now(), Kind: as, Container: a.Container, Attempt: a.Attempt,
			Probe: a.Probe, Hook: a.Hook, Outcome: how.outcome, Message: how.message})
	}
}

// aside returns the details that an action has beside its container.
func aside(a Action) string {
	return strings.TrimRight(fmt.Sprintf(" %s%s %s", a.Probe, a.Hook, a.Reason), " ")
}

// outfit configures a container from the suffix of its name: NAME[/WHAT[:KEY=VALUE,…]]…
func outfit(c *pod.Container, words []string) error {
	for _, word := range words {
		what, list, _ := strings.Cut(word, ":")
		args := map[string]string{}
		for _, kv := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			key, value, _ := strings.Cut(kv, "=")
			args[key] = value
		}
		n := func(key string, otherwise int64) int64 {
			if s, ok := args[key]; ok {
				otherwise, _ = strconv.ParseInt(s, 10, 64)
			}
			return otherwise
		}
		probe := &pod.Probe{
			InitialDelaySeconds: n("delay", 0), PeriodSeconds: n("period", 10), TimeoutSeconds: 1,
			SuccessThreshold: int(n("success", 1)), FailureThreshold: int(n("failure", 3)),
		}
		if _, ok := args["grace"]; ok {
			probe.GraceSeconds = new(n("grace", 0))
		}
		hook := &pod.Handler{}
		if _, ok := args["sleep"]; ok {
			hook.SleepSeconds = new(n("sleep", 0))
		}
		switch what {
		case "liveness":
			c.Liveness = probe
		case "readiness":
			c.Readiness = probe
		case "startup":
			c.Startup = probe
		case "postStart":
			c.PostStart = hook
		case "preStop":
			c.PreStop = hook
		case "priority":
			c.Priority = int(n("is", 0))
		case "restart":
			c.RestartPolicy, c.MaxRestarts = pod.RestartPolicy(args["policy"]), int(n("max", 0))
		case "in", "notIn", "allIn":
			rule := pod.RestartRule{NotIn: what == "notIn", All: what == "allIn"}
			for _, code := range strings.Split(args["codes"], "+") {
				number, err := strconv.Atoi(code)
				if err != nil {
					return err
				}
				rule.ExitCodes = append(rule.ExitCodes, number)
			}
			c.RestartRules = append(c.RestartRules, rule)
		default:
			return fmt.Errorf("a container has no %q", what)
		}
	}
	return nil
}
