package support

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/pod"
)

const referencePage = "../../../docs/reference/fields.md"

// TestReferencePage keeps the users' page equal to the table that decides.
func TestReferencePage(t *testing.T) { golden.Check(t, referencePage, reference()) }

func reference() string {
	var b strings.Builder
	b.WriteString(`# Fields of a Pod

<!-- Written by go test ./internal/manifest/support -update from the support table; do not edit. -->

How podrun supports each field of a Kubernetes Pod (apiVersion v1). No field is ignored silently:

- **supported**: works as in Kubernetes. Where only some values are named, any other value is an error.
- **accepted**: has no effect on one machine, unless its note names an effect. It is read, stored, shown by ` + "`podrun get`" + `, and ` + "`podrun validate`" + ` reports it.
- **refused**: podrun does not support it. A manifest that sets it is an error, before anything is created.

` + "`podrun validate FILE`" + ` prints the same words for one manifest, field by field. A field that is not listed is part of an accepted or refused one, and handled in the same way; if it is not, it does not exist, and is an error.

`)
	counts := map[Level]int{}
	for _, r := range podTable() {
		counts[r.Support]++
	}
	fmt.Fprintf(&b, "%d fields are supported, %d accepted, %d refused; what a refused or accepted field contains is not counted.\n", counts[Supported], counts[Accepted], counts[Refused])
	for _, section := range []struct {
		title, intro string
		rows         []Field
	}{
		{"Object and metadata", "", metaRows},
		{"spec", "", podRows},
		{"spec.securityContext", "", podSecurityRows},
		{"spec.containers[]", "Init containers have the same fields, except for those in the table spec.initContainers[], and except for probes and lifecycle, which Kubernetes allows only for sidecars.", containerRows},
		{"Probes and hooks of spec.containers[]", "", probeRows},
		{"spec.initContainers[]", "", initRows},
		{"spec.containers[].securityContext", "", containerSecurityRows},
		{"spec.volumes[]", "", volumeRows()},
		{"Metadata of every other kind", "ConfigMap, Secret, PersistentVolumeClaim, PersistentVolume, Service, Endpoints, EndpointSlice, ServiceAccount, Namespace and NetworkPolicy.", objectRows("the kind's name")},
		{"ConfigMap", "", configMapRows},
		{"Secret", "", secretRows},
		{"PersistentVolumeClaim", "", claimRows},
		{"PersistentVolume", "", persistentVolumeRows},
		{"Service", "", serviceRows},
		{"Endpoints", "", endpointsRows},
		{"EndpointSlice", "", endpointSliceRows},
		{"ServiceAccount", "", serviceAccountRows},
		{"Namespace", "", namespaceRows},
		{"NetworkPolicy", "", networkPolicyRows},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", section.title)
		if section.intro != "" {
			b.WriteString(section.intro + "\n\n")
		}
		b.WriteString("| field | | note |\n|---|---|---|\n")
		for _, r := range expand(section.rows) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Path, r.Support, r.Describe())
		}
	}
	return b.String()
}

const workloadsPage = "../../../docs/reference/workloads.md"

// TestWorkloadsPage keeps the users' page equal to the tables that decide.
func TestWorkloadsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Fields of workloads

<!-- Written by go test ./internal/manifest/support -update from the support tables; do not edit. -->

How podrun supports each field of a Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job or CronJob.
Supported, accepted and refused have the meaning that they have for [the fields of a Pod](fields.md). A pod template
has those fields, too; it has one row here.
`)
	for _, kind := range pod.Workloads() {
		fmt.Fprintf(&b, "\n## %s\n\n| field | | note |\n|---|---|---|\n", kind)
		for _, r := range workloadRows(kind) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Path, r.Support, r.Describe())
		}
		path := templateField
		if kind == pod.KindCronJob {
			path = cronTemplateField
		}
		fmt.Fprintf(&b, "| `%s` | %s | a Pod; its name and namespace are given by podrun |\n", path, Supported)
	}
	golden.Check(t, workloadsPage, b.String())
}
