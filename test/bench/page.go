package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pages are the files that publish the results of a run.
type pages struct {
	docs    string // the directory of bench.md, bench.svg and bench.json; "": none
	network string // a file with the page's part about the network; "": none
	readme  string // a file with marks, between which the most important figures go; "": none
}

// write writes the page, its plot, its figures, and the README's summary.
func (r report) write(to pages) error {
	if to.docs == "" {
		return nil
	}
	list := r.ratios()
	title := fmt.Sprintf("podrun's part of what podman takes: %d rounds, %d CPUs, kernel %s, %s", r.Rounds, r.CPUs, r.Kernel, r.When.Format("2006-01-02"))
	if err := os.WriteFile(filepath.Join(to.docs, "bench.svg"), []byte(plot(title, list)), 0o644); err != nil {
		return err
	}
	text := r.page(list)
	if to.network != "" {
		b, err := os.ReadFile(to.network)
		if err != nil {
			return err
		}
		text += "\n## Network\n\n" + string(b)
	}
	if err := os.WriteFile(filepath.Join(to.docs, "bench.md"), []byte(text), 0o644); err != nil {
		return err
	}
	if err := r.save(filepath.Join(to.docs, "bench.json")); err != nil || to.readme == "" {
		return err
	}
	b, err := os.ReadFile(to.readme)
	if err == nil {
		text, err = r.between(string(b))
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to.readme, []byte(text), 0o644)
}

// The marks of a text's summary.
const (
	markFrom = "<!-- from make bench -->\n"
	markTo   = "<!-- to here -->\n"
)

// between inserts the summary into a text.
func (r report) between(text string) (string, error) {
	head, rest, ok1 := strings.Cut(text, markFrom)
	_, tail, ok2 := strings.Cut(rest, markTo)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("write figures: the text has no marks %q and %q", markFrom, markTo)
	}
	words := fmt.Sprintf("Here, on %d processors, with podman %s, medians of %d rounds:\n\n| | podrun | podman | ratio |\n|---|---|---|---|\n", r.CPUs, r.podman(), r.Rounds)
	pod := shapes[1].title
	for _, t := range []struct{ title, task string }{
		{"`up -d` of a pod with " + pod, "up, " + pod}, {"`down`", "down, " + pod}, {"`exec … true`", "exec true"}, {"`logs`", "logs"}, {"`ps`", "ps, 1 pod"},
	} {
		if by := r.Times[t.task]; by["podrun"].Median > 0 && by["podman"].Median > 0 {
			a, b := by["podrun"].Median, by["podman"].Median
			words += fmt.Sprintf("| %s | %.0f ms | %.0f ms | %s |\n", t.title, a, b, fraction(a/b))
		}
	}
	if by := r.Memory[pod+", idle"]; by["podrun"].PSS > 0 && by["podman"].PSS > 0 {
		a, b := float64(by["podrun"].PSS), float64(by["podman"].PSS)
		words += fmt.Sprintf("| its own memory (PSS), once the pod is quiet | %.1f MB | %.1f MB | %s |\n", a/1024, b/1024, fraction(a/b))
	}
	if by := r.Memory[pod+", just started"]; by["podrun"].PSS > 0 && by["podman"].PSS > 0 {
		a, b := float64(by["podrun"].PSS), float64(by["podman"].PSS)
		words += fmt.Sprintf("| the same, right after the start | %.1f MB | %.1f MB | %s |\n", a/1024, b/1024, fraction(a/b))
	}
	if r.Costs != nil {
		for _, k := range probeKinds {
			if a, b := r.Costs.Probe[k.name]["podrun"], r.Costs.Probe[k.name]["podman"]; a > 0 && b > 0 {
				words += fmt.Sprintf("| processor time of a probe, `%s` | %.1f ms | %.0f ms | %s |\n", k.name, a, b, fraction(a/b))
			}
		}
	}
	return head + markFrom + words + markTo + tail, nil
}

// podman returns its version, and the components that this machine requires.
func (r report) podman() string {
	version := r.PodmanVersion
	if i := strings.LastIndexByte(version, ' '); i >= 0 {
		version = version[i+1:]
	}
	return strings.TrimSpace(version + " " + r.Podman)
}

// page returns everything as Markdown.
func (r report) page(list []ratio) string {
	var b strings.Builder
	b.WriteString("# How quick it is\n\n<!-- written by `make bench` -->\n\n")
	fmt.Fprintf(&b, "Measured by `make bench` on %s, %d rounds in %s, %d CPUs, kernel %s, load %s before; podrun and\npodman %s in turn, so that what else the machine did met both. Times are min / median / max.\nA ratio is of medians; 1/10 is a tenth of what podman takes. A bar that is not reached is orange.\nSystem calls are counted once, of all processes of the engine, and are the same however busy the\nmachine is; so, nearly, is the processors' time of a pod's whole life.\n\n![ratios](bench.svg)\n\n",
		r.When.Format("2006-01-02"), r.Rounds, r.Took, r.CPUs, r.Kernel, cmp.Or(r.Load, "unknown"), r.podman())
	if r.PodmanIdled > 0 {
		fmt.Fprintf(&b, "Here podman waited %v for the end of init containers that had ended, of which its own clean-up did not tell\nit: %.0f s in all of its starts, which are not counted.\n\n", idlePatience, r.PodmanIdled)
	}
	b.WriteString("| | podrun | podman | ratio | to be reached | system calls |\n|---|---|---|---|---|---|\n")
	for _, x := range list {
		bar := ""
		if x.Target > 0 {
			bar = "at most " + fraction(x.Target)
			if x.Value > x.Target {
				bar += ": missed"
			}
		}
		if !strings.HasPrefix(x.Name, callsOf) {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", x.Name, x.Ours, x.Theirs, fraction(x.Value), bar, r.calls(x.Name))
		}
	}
	if len(r.Starts) > 0 {
		b.WriteString(startNote)
	}
	if s := r.Scale; s != nil {
		fmt.Fprintf(&b, "\n%d pods with %d containers: `up` of pod 2 took %s ms, of pod %d %s (one more pod beside the first and\nbeside all, %d times and %d); at rest, each probed every 10 s, they took %s %% of a processor\nin a minute (in its sixths); podrun's own memory (PSS):", s.Pods, s.Containers, s.Few, s.Pods+1, s.Many, len(s.Few.All), len(s.Many.All), s.idleText())
		text := ""
		for _, at := range psAt {
			if pss, ok := s.PSS[at]; ok {
				text += fmt.Sprintf(" %d pods %.1f MB,", at, float64(pss)/1024)
			}
		}
		b.WriteString(strings.TrimSuffix(text, ",") + ".\n")
	}
	if c := r.Costs; c != nil {
		fmt.Fprintf(&b, "\nIn an idle minute a pod wrote %d bytes to the disk. With %d containers probed every second podrun kept", c.IdleWritten, probed)
		text := ""
		for _, k := range probeKinds {
			text += fmt.Sprintf(" %.1f MB (%s),", float64(c.ProbingPSS[k.name])/1024, k.name)
		}
		b.WriteString(strings.TrimSuffix(text, ",") + ".\n")
	}
	b.WriteString(r.memoryPart())
	return b.String()
}

// memoryPart returns the part about the memory of an engine's own processes.
func (r report) memoryPart() string {
	var b strings.Builder
	const head = "\n## Memory by process\n\nThe engine's own processes of one pod, without those of its containers; PSS, which counts what\nprocesses share once.\n\n| pod | engine | process | how many | PSS together |\n|---|---|---|---|---|\n"
	for _, pod := range slices.Sorted(maps.Keys(r.Memory)) {
		for _, engine := range slices.Sorted(maps.Keys(r.Memory[pod])) {
			each := r.Memory[pod][engine].Each
			for _, name := range slices.Sorted(maps.Keys(each)) {
				fmt.Fprintf(&b, "| %s | %s | %s | %d | %d KiB |\n", pod, engine, name, each[name].Processes, each[name].PSS)
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return head + b.String()
}
