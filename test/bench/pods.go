package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// payload marks the processes that belong to the pods and not to an engine.
const payload = "86399"

const image = "localhost/podrun-example:1"

// shape is a measured pod; the file NAME.yaml makes the pod NAME.
type shape struct{ name, title, text string }

var shapes = []shape{
	{"bench-1", "1 container", header + containers("main")},
	{"bench-3", "1 init + 2 apps", header + inits("init") + containers("main", "other")},
	{"bench-10", "2 init + 8 apps", header + inits("first", "second") + containers("main", "b", "c", "d", "e", "f", "g", "h")},
}

// manyContainers has the first shape's container and oneMore others: the difference between the two is the price of a container.
var manyContainers = shape{"bench-9", "9 containers", header + containers("main", "b", "c", "d", "e", "f", "g", "h", "i")}

const oneMore = 8

func inits(names ...string) string {
	text := "  initContainers:\n"
	for _, n := range names {
		text += `  - name: ` + n + `
    image: ` + image + `
    imagePullPolicy: Never
    command: [/bin/true]
`
	}
	return text
}

// header begins a manifest. restartPolicy is Never because podman 4.3.1 restarts a finished init
// container of an Always pod for 20 s before it continues.
const header = `apiVersion: v1
kind: Pod
metadata:
  name: NAME
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 5
`

// containers start at once and exit at once on request: the time of a stop is the engine's, not the
// container's.
func containers(names ...string) string {
	var b strings.Builder
	b.WriteString("  containers:\n")
	for _, n := range names {
		b.WriteString(`  - name: ` + n + `
    image: ` + image + `
    imagePullPolicy: Never
    command: [/bin/sh, -c, "trap 'kill $!; exit 0' TERM; sleep ` + payload + ` & wait"]
`)
	}
	return b.String()
}

func writePods(work string) error {
	dir := filepath.Join(work, "pods")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, s := range append(slices.Clip(shapes), manyContainers) {
		text := strings.Replace(s.text, "NAME", s.name, 1)
		if err := os.WriteFile(filepath.Join(dir, s.name+".yaml"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
