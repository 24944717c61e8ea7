package support

import (
	"slices"

	"github.com/podrun/podrun/pod"
)

const (
	noteOneMachine    = "there is one machine"
	noteOwnedByUID    = "a workload owns the pods that it made; it does not adopt others with the same labels"
	noteNotOneMachine = "without meaning on one machine"
)

// The paths of pod templates.
const (
	templateField     = "spec.template"
	cronTemplateField = "spec.jobTemplate.spec.template"
)

// prefixed returns rows with their paths below a prefix.
func prefixed(prefix string, rows []Field) []Field {
	out := make([]Field, 0, len(rows))
	for _, r := range rows {
		r.Path = prefix + "." + r.Path
		out = append(out, r)
	}
	return out
}

// templateRows returns the fields of a Pod, below the path of a template.
func templateRows(path string) []Field {
	rows := []Field{{Path: path, Support: Done, Note: "a Pod: its fields have rows of their own"}}
	for _, r := range prefixed(path, podTable()) {
		switch r.Path {
		case path + ".apiVersion", path + ".kind", path + ".status":
			continue
		case path + ".metadata.name", path + ".metadata.namespace", path + ".metadata.generateName":
			r.Support, r.Note = Accepted, "pods are named after what makes them, and live in its namespace"
		}
		rows = append(rows, r)
	}
	return rows
}

// workloadRows returns the fields of a kind of workload, without those of its template.
func workloadRows(kind pod.ObjectKind) []Field {
	rows := objectRows(string(kind))
	rows[0].Note = "apps/v1"
	own := map[pod.ObjectKind][]Field{
		pod.KindDeployment: deploymentRows, pod.KindReplicaSet: replicaSetRows, pod.KindStatefulSet: statefulSetRows,
		pod.KindDaemonSet: daemonSetRows, pod.KindJob: jobRows, pod.KindCronJob: cronJobRows,
	}[kind]
	if kind == pod.KindJob || kind == pod.KindCronJob {
		rows[0].Note = "batch/v1"
	}
	rows = slices.Concat(rows, []Field{statusRow, {Path: "spec", Support: Done}}, own)
	if kind == pod.KindCronJob {
		rows = append(rows, Field{Path: "spec.jobTemplate", Support: Done}, Field{Path: "spec.jobTemplate.metadata", Support: Done})
		for _, r := range objectRows("Job") {
			switch {
			case r.Path == "apiVersion" || r.Path == "kind" || r.Path == "metadata":
				continue
			case r.Path == "metadata.name" || r.Path == "metadata.namespace" || r.Path == "metadata.generateName":
				r.Support, r.Note = Accepted, "Jobs are named after the CronJob and the time they are due"
			}
			r.Path = "spec.jobTemplate." + r.Path
			rows = append(rows, r)
		}
		rows = append(rows, Field{Path: "spec.jobTemplate.spec", Support: Done})
		rows = append(rows, prefixed("spec.jobTemplate", jobRows)...)
	}
	return expand(rows)
}

// TemplatePath returns the path of the pod template in a kind.
func TemplatePath(kind pod.ObjectKind) string {
	if kind == pod.KindCronJob {
		return cronTemplateField
	}
	return templateField
}

func selectorRows() []Field {
	return []Field{
		{Path: "spec.selector", Support: Done, Note: "must select the template's labels; " + noteOwnedByUID},
		{Path: "spec.selector.{matchLabels,matchExpressions,matchExpressions[].key,matchExpressions[].operator,matchExpressions[].values}", Support: Done},
	}
}

var deploymentRows = slices.Concat([]Field{
	{Path: "spec.replicas", Support: Done, Note: "default: 1; all on this machine"},
	{Path: "spec.{minReadySeconds,paused}", Support: Done},
	{Path: "spec.progressDeadlineSeconds", Support: Done, Note: "default: 600"},
	{Path: "spec.revisionHistoryLimit", Support: Done, Note: "default: 10; the templates of so many old versions are remembered"},
	{Path: "spec.strategy", Support: Done},
	{Path: "spec.strategy.type", Support: Done, Note: "RollingUpdate (default) or Recreate"},
	{Path: "spec.strategy.rollingUpdate", Support: Done},
	{Path: "spec.strategy.rollingUpdate.maxSurge", Support: Done, Note: "default: 25%, rounded up"},
	{Path: "spec.strategy.rollingUpdate.maxUnavailable", Support: Done, Note: "default: 25%, rounded down"},
}, selectorRows())

var replicaSetRows = slices.Concat([]Field{
	{Path: "spec.replicas", Support: Done, Note: "default: 1; all on this machine"},
	{Path: "spec.minReadySeconds", Support: Done},
}, selectorRows())

var statefulSetRows = slices.Concat([]Field{
	{Path: "spec.replicas", Support: Done, Note: "default: 1; all on this machine"},
	{Path: "spec.minReadySeconds", Support: Done},
	{Path: "spec.podManagementPolicy", Support: Done, Note: "OrderedReady (default) or Parallel"},
	{Path: "spec.revisionHistoryLimit", Support: Done, Note: "default: 10"},
	{Path: "spec.serviceName", Support: Done, Note: "the pods' subdomain"},
	{Path: "spec.{ordinals,ordinals.start,updateStrategy}", Support: Done},
	{Path: "spec.updateStrategy.type", Support: Done, Note: "RollingUpdate (default) or OnDelete"},
	{Path: "spec.updateStrategy.rollingUpdate{,.partition}", Support: Done},
	{Path: "spec.updateStrategy.rollingUpdate.maxUnavailable", Support: Done, Note: "default: 1; a part of all is rounded down"},
}, claimTemplateRows(), selectorRows())

var daemonSetRows = slices.Concat([]Field{
	{Path: "spec.minReadySeconds", Support: Done},
	{Path: "spec.revisionHistoryLimit", Support: Done, Note: "default: 10"},
	{Path: "spec.updateStrategy", Support: Done},
	{Path: "spec.updateStrategy.type", Support: Done, Note: "RollingUpdate (default) or OnDelete"},
	{Path: "spec.updateStrategy.rollingUpdate", Support: Done},
	{Path: "spec.updateStrategy.rollingUpdate.maxSurge", Support: Done, Note: "default: 0; more than 0: the new pod is there before the old one goes"},
	{Path: "spec.updateStrategy.rollingUpdate.maxUnavailable", Support: Done, Note: "default: 1; " + noteOneMachine + ", and one pod"},
}, selectorRows())

var jobRows = slices.Concat([]Field{
	{Path: "spec.parallelism", Support: Done, Note: "default: 1"},
	{Path: "spec.completions", Support: Done, Note: "default: 1 without parallelism, else one success is enough"},
	{Path: "spec.completionMode", Support: Done, Note: "NonIndexed (default) or Indexed"},
	{Path: "spec.backoffLimit", Support: Done, Note: "default: 6; without bounds with backoffLimitPerIndex"},
	{Path: "spec.activeDeadlineSeconds", Support: Done},
	{Path: "spec.ttlSecondsAfterFinished", Support: Done, Note: "the Job and its pods are removed then"},
	{Path: "spec.suspend", Support: Done},
	{Path: "spec.podReplacementPolicy", Support: Done, Note: "TerminatingOrFailed (default) or Failed"},
	{Path: "spec.{selector,manualSelector}", Support: Refused, Note: noteOwnedByUID},
	{Path: "spec.managedBy", Support: Refused, Note: "there is no other controller"},
	{Path: "spec.scheduling", Support: Refused, Note: noteNotOneMachine},
}, jobPolicyRows)

var cronJobRows = []Field{
	{Path: "spec.schedule", Support: Done, Note: "five fields, or @hourly, @daily, @weekly, @monthly, @yearly, or @every DURATION"},
	{Path: "spec.timeZone", Support: Done, Note: "default: the machine's"},
	{Path: "spec.startingDeadlineSeconds", Support: Done},
	{Path: "spec.concurrencyPolicy", Support: Done, Note: "Allow (default), Forbid or Replace"},
	{Path: "spec.suspend", Support: Done},
	{Path: "spec.successfulJobsHistoryLimit", Support: Done, Note: "default: 3"},
	{Path: "spec.failedJobsHistoryLimit", Support: Done, Note: "default: 1"},
}

// claimTemplateRows returns the fields of a claim template, which are those of a claim.
func claimTemplateRows() []Field {
	const path = "spec.volumeClaimTemplates[]"
	rows := []Field{{Path: "spec.volumeClaimTemplates", Support: Done, Note: "each pod has a claim of its own, TEMPLATE-SET-ORDINAL, which stays when the pod goes"}}
	for _, r := range prefixed(path, slices.Concat(objectRows("PersistentVolumeClaim"), claimRows)) {
		switch r.Path {
		case path + ".metadata.namespace", path + ".metadata.generateName":
			r.Support, r.Note = Accepted, "a claim is named after the template and the pod, and lives in its namespace"
		}
		rows = append(rows, r)
	}
	return append(rows,
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy", Support: Done},
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Support: Done, Note: "Retain (default) or Delete"},
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy.whenScaled", Support: Done, Note: "Retain (default) or Delete"})
}

var jobPolicyRows = []Field{
	{Path: "spec.{backoffLimitPerIndex,maxFailedIndexes,podFailurePolicy,podFailurePolicy.rules}", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].action", Support: Done, Note: "FailJob, FailIndex, Ignore or Count"},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes{,.containerName}", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes.operator", Support: Done, Note: "In or NotIn"},
	{Path: "spec.podFailurePolicy.rules[].{onExitCodes.values,onPodConditions}", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].onPodConditions[].type", Support: Done, Note: "DisruptionTarget: the pod was evicted, or ended with the machine"},
	{Path: "spec.podFailurePolicy.rules[].onPodConditions[].status", Support: Done, Note: "default: True"},
	{Path: "spec.successPolicy{,.rules,.rules[].succeededIndexes,.rules[].succeededCount}", Support: Done},
}
