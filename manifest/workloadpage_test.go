package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/pod"
)

const workloadsPage = "../docs/reference/workloads.md"

// TestWorkloadsPage keeps the page that users read equal to the tables that decide.
func TestWorkloadsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Fields of the objects that make pods

<!-- Written by go test ./manifest -update from the support tables; do not edit. -->

What podrun makes of every field of a Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob.
The words are those of [the fields of a Pod](fields.md), which are also the fields of the templates below:
of these only the template itself has a row here.
`)
	for _, kind := range pod.Workloads() {
		fmt.Fprintf(&b, "\n## %s\n\n| field | | note |\n|---|---|---|\n", kind)
		for _, r := range workloadRows(kind) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Path, r.Support, r.describe())
		}
		path := templatePath
		if kind == pod.KindCronJob {
			path = cronTemplatePath
		}
		fmt.Fprintf(&b, "| `%s` | %s | a Pod; its name and namespace are given by podrun |\n", path, Done)
	}
	golden.Check(t, workloadsPage, b.String())
}
