package support

import (
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

const (
	noteOneMachine    = "there is one machine"
	noteOwnedByUID    = "a workload owns the pods that it created; it does not adopt others with the same labels"
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
	rows := []Field{{Path: path, Support: Supported, Note: "a Pod: its fields have rows of their own"}}
	for _, r := range prefixed(path, podTable()) {
		switch r.Path {
		case path + ".apiVersion", path + ".kind", path + ".status":
			continue
		case path + ".metadata.name", path + ".metadata.namespace", path + ".metadata.generateName":
			r.Support, r.Note = Accepted, "pods are named after their controller, and are in its namespace"
		}
		rows = append(rows, r)
	}
	return rows
}

// workloadRows returns the fields of a kind of workload, without the fields of its template.
func workloadRows(kind pod.ObjectKind) []Field {
	rows := objectRows(string(kind))
	rows[0].Note = "apps/v1"
	fields := map[pod.ObjectKind][]Field{
		pod.KindDeployment: deploymentRows, pod.KindReplicaSet: replicaSetRows, pod.KindStatefulSet: statefulSetRows,
		pod.KindReplication: replicationControllerRows, pod.KindDaemonSet: daemonSetRows, pod.KindJob: jobRows, pod.KindCronJob: cronJobRows,
	}[kind]
	if kind == pod.KindReplication {
		rows[0].Note = "v1"
	}
	if kind == pod.KindJob || kind == pod.KindCronJob {
		rows[0].Note = "batch/v1"
	}
	rows = slices.Concat(rows, []Field{statusRow, {Path: "spec", Support: Supported}}, fields)
	if kind == pod.KindCronJob {
		rows = append(rows, Field{Path: "spec.jobTemplate", Support: Supported}, Field{Path: "spec.jobTemplate.metadata", Support: Supported})
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
		rows = append(rows, Field{Path: "spec.jobTemplate.spec", Support: Supported})
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
		{Path: "spec.selector", Support: Supported, Note: "must select the template's labels; " + noteOwnedByUID},
		{Path: "spec.selector.{matchLabels,matchExpressions,matchExpressions[].key,matchExpressions[].operator,matchExpressions[].values}", Support: Supported},
	}
}

var deploymentRows = slices.Concat([]Field{
	{Path: "spec.replicas", Support: Supported, Note: "default: 1; all on this machine"},
	{Path: "spec.{minReadySeconds,paused}", Support: Supported},
	{Path: "spec.progressDeadlineSeconds", Support: Supported, Note: "default: 600"},
	{Path: "spec.revisionHistoryLimit", Support: Supported, Note: "default: 10; the number of old templates that are kept"},
	{Path: "spec.strategy", Support: Supported},
	{Path: "spec.strategy.type", Support: Supported, Note: "RollingUpdate (default) or Recreate"},
	{Path: "spec.strategy.rollingUpdate", Support: Supported},
	{Path: "spec.strategy.rollingUpdate.maxSurge", Support: Supported, Note: "default: 25%, rounded up"},
	{Path: "spec.strategy.rollingUpdate.maxUnavailable", Support: Supported, Note: "default: 25%, rounded down"},
}, selectorRows())

var replicaSetRows = slices.Concat([]Field{
	{Path: "spec.replicas", Support: Supported, Note: "default: 1; all on this machine"},
	{Path: "spec.minReadySeconds", Support: Supported},
}, selectorRows())

var replicationControllerRows = []Field{
	{Path: "spec.replicas", Support: Supported, Note: "default: 1; all on this machine"},
	{Path: "spec.minReadySeconds", Support: Supported},
	{Path: "spec.selector", Support: Supported, Note: "default: the template's labels; " + noteOwnedByUID},
}

var statefulSetRows = slices.Concat([]Field{
	{Path: "spec.replicas", Support: Supported, Note: "default: 1; all on this machine"},
	{Path: "spec.minReadySeconds", Support: Supported},
	{Path: "spec.podManagementPolicy", Support: Supported, Note: "OrderedReady (default) or Parallel"},
	{Path: "spec.revisionHistoryLimit", Support: Supported, Note: "default: 10"},
	{Path: "spec.serviceName", Support: Supported, Note: "the pods' subdomain"},
	{Path: "spec.{ordinals,ordinals.start,updateStrategy}", Support: Supported},
	{Path: "spec.updateStrategy.type", Support: Supported, Note: "RollingUpdate (default) or OnDelete"},
	{Path: "spec.updateStrategy.rollingUpdate{,.partition}", Support: Supported},
	{Path: "spec.updateStrategy.rollingUpdate.maxUnavailable", Support: Supported, Note: "default: 1; a percentage is rounded down, to at least 1"},
}, claimTemplateRows(), selectorRows())

var daemonSetRows = slices.Concat([]Field{
	{Path: "spec.minReadySeconds", Support: Supported},
	{Path: "spec.revisionHistoryLimit", Support: Supported, Note: "default: 10"},
	{Path: "spec.updateStrategy", Support: Supported},
	{Path: "spec.updateStrategy.type", Support: Supported, Note: "RollingUpdate (default) or OnDelete"},
	{Path: "spec.updateStrategy.rollingUpdate", Support: Supported},
	{Path: "spec.updateStrategy.rollingUpdate.maxSurge", Support: Supported, Note: "default: 0; if more than 0, the new pod is created before the old one is removed"},
	{Path: "spec.updateStrategy.rollingUpdate.maxUnavailable", Support: Supported, Note: "default: 1; " + noteOneMachine + ", and one pod"},
}, selectorRows())

var jobRows = slices.Concat([]Field{
	{Path: "spec.parallelism", Support: Supported, Note: "default: 1"},
	{Path: "spec.completions", Support: Supported, Note: "default: 1; unset with parallelism: one success is enough"},
	{Path: "spec.completionMode", Support: Supported, Note: "NonIndexed (default) or Indexed"},
	{Path: "spec.backoffLimit", Support: Supported, Note: "default: 6; unlimited if backoffLimitPerIndex is set"},
	{Path: "spec.activeDeadlineSeconds", Support: Supported},
	{Path: "spec.ttlSecondsAfterFinished", Support: Supported, Note: "the Job and its pods are removed then"},
	{Path: "spec.suspend", Support: Supported},
	{Path: "spec.podReplacementPolicy", Support: Supported, Note: "TerminatingOrFailed (default) or Failed"},
	{Path: "spec.{selector,manualSelector}", Support: Refused, Note: noteOwnedByUID},
	{Path: "spec.managedBy", Support: Refused, Note: "there is no other controller"},
	{Path: "spec.scheduling", Support: Refused, Note: noteNotOneMachine},
}, jobPolicyRows)

var cronJobRows = []Field{
	{Path: "spec.schedule", Support: Supported, Note: "five fields, or @hourly, @daily, @weekly, @monthly, @yearly, or @every DURATION"},
	{Path: "spec.timeZone", Support: Supported, Note: "default: the machine's"},
	{Path: "spec.startingDeadlineSeconds", Support: Supported},
	{Path: "spec.concurrencyPolicy", Support: Supported, Note: "Allow (default), Forbid or Replace"},
	{Path: "spec.suspend", Support: Supported},
	{Path: "spec.successfulJobsHistoryLimit", Support: Supported, Note: "default: 3"},
	{Path: "spec.failedJobsHistoryLimit", Support: Supported, Note: "default: 1"},
}

// claimTemplateRows returns the fields of a claim template, the same as of a claim.
func claimTemplateRows() []Field {
	const path = "spec.volumeClaimTemplates[]"
	rows := []Field{{Path: "spec.volumeClaimTemplates", Support: Supported, Note: "each pod has a claim of its own, TEMPLATE-SET-ORDINAL, which remains when the pod is removed"}}
	for _, r := range prefixed(path, slices.Concat(objectRows("PersistentVolumeClaim"), claimRows)) {
		switch r.Path {
		case path + ".metadata.namespace", path + ".metadata.generateName":
			r.Support, r.Note = Accepted, "a claim is named after the template and the pod, and is in its namespace"
		}
		rows = append(rows, r)
	}
	return append(rows,
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy", Support: Supported},
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Support: Supported, Note: "Retain (default) or Delete"},
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy.whenScaled", Support: Supported, Note: "Retain (default) or Delete"})
}

var jobPolicyRows = []Field{
	{Path: "spec.{backoffLimitPerIndex,maxFailedIndexes,podFailurePolicy,podFailurePolicy.rules}", Support: Supported},
	{Path: "spec.podFailurePolicy.rules[].action", Support: Supported, Note: "FailJob, FailIndex, Ignore or Count"},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes{,.containerName}", Support: Supported},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes.operator", Support: Supported, Note: "In or NotIn"},
	{Path: "spec.podFailurePolicy.rules[].{onExitCodes.values,onPodConditions}", Support: Supported},
	{Path: "spec.podFailurePolicy.rules[].onPodConditions[].type", Support: Supported, Note: "DisruptionTarget: the pod was evicted, or ended with the machine"},
	{Path: "spec.podFailurePolicy.rules[].onPodConditions[].status", Support: Supported, Note: "default: True"},
	{Path: "spec.successPolicy{,.rules,.rules[].succeededIndexes,.rules[].succeededCount}", Support: Supported},
}
