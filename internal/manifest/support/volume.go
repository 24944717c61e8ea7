package support

import (
	"slices"
	"strings"
)

const (
	noteNoDriver  = "needs a storage driver: mount it on the host and use hostPath, or a persistentVolumeClaim, which is a directory"
	noteOldPlugin = "a volume of an old cloud or storage plug-in: mount it on the host and use hostPath, or a persistentVolumeClaim, which is a directory"
	noteNoCA      = "there is no API server that issues it: store one in a Secret"
)

// volumeRows returns the kinds of volumes.
func volumeRows() []Field {
	return slices.Concat(ownVolumeRows, fileRows("spec.volumes[].configMap"), fileRows("spec.volumes[].secret"),
		downwardRows("spec.volumes[].downwardAPI"), projectedRows(), ephemeralRows(), driverRows)
}

var ownVolumeRows = []Field{
	{Path: "spec.volumes{,[].name}", Support: Supported},
	{Path: "spec.volumes[].emptyDir", Support: Supported, Note: "also the default of a volume without a kind"},
	{Path: "spec.volumes[].emptyDir.medium", Support: Supported, Only: []string{"Memory", "HugePages", "HugePages-2Mi", "HugePages-1Gi", "HugePages-64Ki", "HugePages-32Mi"},
		Note: "Memory: a tmpfs that the pod's containers share; HugePages: a hugetlbfs, only for root's pods, with a page size for which a container has a limit; default: disk"},
	{Path: "spec.volumes[].emptyDir.sizeLimit", Support: Supported, Note: "on disk: a pod that exceeds it is evicted; with medium Memory: the tmpfs's size, at most the pod's memory limit; huge pages have limits of their own"},
	{Path: "spec.volumes[].emptyDir.mode", Support: Supported, Note: "default: 0777; with medium Memory 1777"},
	{Path: "spec.volumes[].hostPath", Support: Supported, Note: "with the user's own rights"},
	{Path: "spec.volumes[].hostPath.path", Support: Supported, Note: "links are followed; resolved again whenever a container starts"},
	{Path: "spec.volumes[].hostPath.type", Support: Supported, Note: "default: anything; a missing directory is created, as containerd and CRI-O do"},
	{Path: "spec.volumes[].persistentVolumeClaim", Support: Supported, Note: "a directory that remains when the pod is removed; podrun volume lists them"},
	{Path: "spec.volumes[].persistentVolumeClaim.{claimName,readOnly}", Support: Supported},
	{Path: "spec.volumes[].image", Support: Supported, Note: "read-only, and no program is run from it; of an OCI artifact each layer is a file, named by its annotation org.opencontainers.image.title"},
	{Path: "spec.volumes[].image.reference", Support: Supported},
	{Path: "spec.volumes[].image.pullPolicy", Support: Supported, Note: "default: Always for the tag latest, else IfNotPresent"},
}

// fileRows returns the fields of a volume with files from a ConfigMap or Secret.
func fileRows(path string) []Field {
	rows := []Field{
		{Path: path, Support: Supported, Note: "in memory; changes when the object does, unless subPath is used"},
		{Path: path + ".defaultMode", Support: Supported, Note: "default: 0644"},
		{Path: path + ".defaultUser", Support: Supported, Note: "default: root of the pod"},
	}
	if strings.HasSuffix(path, "secret") {
		rows[0].Note = "in memory that is never swapped out; " + strings.TrimPrefix(rows[0].Note, "in memory; ")
		rows = append(rows, Field{Path: path + ".secretName", Support: Supported})
	} else {
		rows = append(rows, Field{Path: path + ".name", Support: Supported})
	}
	return append(rows, itemRows(path)...)
}

// itemRows returns the fields of the files from an object.
func itemRows(path string) []Field {
	return []Field{
		{Path: path + ".optional", Support: Supported, Note: "unless true, the pod waits until the object exists"},
		{Path: path + ".items", Support: Supported, Note: "default: every key is a file"},
		{Path: path + ".items[].{key,path}", Support: Supported},
		{Path: path + ".items[].mode", Support: Supported, Note: "default: defaultMode"},
		{Path: path + ".items[].user", Support: Supported, Note: "default: defaultUser"},
	}
}

func downwardRows(path string) []Field {
	rows := []Field{{Path: path, Support: Supported, Note: "labels and annotations change with the pod's"}}
	if !strings.Contains(path, "sources") {
		rows = append(rows, Field{Path: path + ".defaultMode", Support: Supported, Note: "default: 0644"},
			Field{Path: path + ".defaultUser", Support: Supported, Note: "default: root of the pod"})
	}
	return append(rows,
		Field{Path: path + ".items{,[].path}", Support: Supported},
		Field{Path: path + ".items[].mode", Support: Supported, Note: "default: defaultMode"},
		Field{Path: path + ".items[].user", Support: Supported, Note: "default: defaultUser"},
		Field{Path: path + ".items[].fieldRef{,.apiVersion}", Support: Supported},
		Field{Path: path + ".items[].fieldRef.fieldPath", Support: Supported, Note: "the pod's name, namespace, uid, labels and annotations"},
		Field{Path: path + ".items[].resourceFieldRef{,.containerName}", Support: Supported},
		Field{Path: path + ".items[].resourceFieldRef.resource", Support: Supported, Note: "a limit that is not set is the machine's capacity; on a node of a cluster, its allocatable"},
		Field{Path: path + ".items[].resourceFieldRef.divisor", Support: Supported, Note: "default: 1; rounded up"})
}

func projectedRows() []Field {
	const sources = "spec.volumes[].projected.sources[]"
	rows := []Field{
		{Path: "spec.volumes[].projected", Support: Supported},
		{Path: "spec.volumes[].projected.defaultMode", Support: Supported, Note: "default: 0644"},
		{Path: "spec.volumes[].projected.defaultUser", Support: Supported, Note: "default: root of the pod"},
		{Path: "spec.volumes[].projected.sources", Support: Supported},
		{Path: sources + ".serviceAccountToken", Support: Refused, Note: noteNoToken + ": keep one for another service in a Secret"},
		{Path: sources + ".{clusterTrustBundle,podCertificate}", Support: Refused, Note: noteNoCA},
	}
	for _, kind := range []string{".configMap", ".secret"} {
		rows = append(rows, Field{Path: sources + kind, Support: Supported}, Field{Path: sources + kind + ".name", Support: Supported})
		rows = append(rows, itemRows(sources+kind)...)
	}
	return append(rows, downwardRows(sources+".downwardAPI")...)
}

const noteEphemeral = "a directory of the pod, removed with it"

// ephemeralRows returns the fields of an ephemeral volume: its template has the fields of a claim.
func ephemeralRows() []Field {
	const template = "spec.volumes[].ephemeral.volumeClaimTemplate"
	rows := []Field{
		{Path: "spec.volumes[].ephemeral", Support: Supported, Note: noteEphemeral},
		{Path: template, Support: Supported},
		{Path: template + ".metadata", Support: Accepted, Note: "the claim is not shown"},
	}
	for _, r := range claimRows {
		switch {
		case r.Path == "spec" || r.Path == "spec.resources.requests":
			r.Note = noteEphemeral
		case r.Path == "spec.storageClassName":
			r.Support, r.Note = Accepted, noteEphemeral
		case !strings.HasPrefix(r.Path, "spec.") || r.Path == "spec.volumeName" || strings.HasPrefix(r.Path, "spec.selector"):
			continue
		}
		r.Path = template + "." + r.Path
		rows = append(rows, r)
	}
	return append(rows, Field{Path: template + ".spec.{volumeName,selector}", Support: Refused, Note: noteEphemeral + "; name a PersistentVolumeClaim for a PersistentVolume"})
}

var driverRows = []Field{
	{Path: "spec.volumes[].{nfs,csi,iscsi,fc}", Support: Refused, Note: noteNoDriver},
	{Path: "spec.volumes[].gitRepo", Support: Refused, Note: "clone in an init container, into an emptyDir"},
	{Path: "spec.volumes[].{gcePersistentDisk,awsElasticBlockStore,glusterfs,rbd,flexVolume,cinder,cephfs,flocker}", Support: Refused, Note: noteOldPlugin},
	{Path: "spec.volumes[].{azureFile,azureDisk,vsphereVolume,quobyte,photonPersistentDisk,portworxVolume,scaleIO}", Support: Refused, Note: noteOldPlugin},
	{Path: "spec.volumes[].storageos", Support: Refused, Note: noteOldPlugin},
}
