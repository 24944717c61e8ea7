package manifest

const (
	noDriver = "needs a storage driver"
	gone     = "a volume of an old cloud or storage plug-in"
)

// volumeRows are the kinds of volumes.
var volumeRows = []Field{
	{Path: "spec.volumes", Support: Done},
	{Path: "spec.volumes[].name", Support: Done},
	{Path: "spec.volumes[].emptyDir", Support: Done, Note: "also the default of a volume without a kind"},
	{Path: "spec.volumes[].emptyDir.medium", Support: Done, Only: []string{"Memory"}, Note: "Memory: one tmpfs for the pod; default: disk"},
	{Path: "spec.volumes[].emptyDir.sizeLimit", Support: Done, Note: "on disk: a pod that exceeds it is evicted; with medium Memory: the tmpfs's size"},
	{Path: "spec.volumes[].emptyDir.mode", Support: Refused, Note: "the mode of a volume"},
	{Path: "spec.volumes[].hostPath", Support: Refused, Note: "files of the host"},
	{Path: "spec.volumes[].configMap", Support: Refused, Note: "ConfigMaps"},
	{Path: "spec.volumes[].secret", Support: Refused, Note: "Secrets"},
	{Path: "spec.volumes[].downwardAPI", Support: Refused, Note: "the pod's fields as files"},
	{Path: "spec.volumes[].projected", Support: Refused, Note: "projected volumes"},
	{Path: "spec.volumes[].persistentVolumeClaim", Support: Refused, Note: "persistent volumes"},
	{Path: "spec.volumes[].ephemeral", Support: Refused, Note: "persistent volumes"},
	{Path: "spec.volumes[].image", Support: Refused, Note: "images as volumes"},
	{Path: "spec.volumes[].nfs", Support: Refused, Note: noDriver},
	{Path: "spec.volumes[].csi", Support: Refused, Note: noDriver},
	{Path: "spec.volumes[].iscsi", Support: Refused, Note: noDriver},
	{Path: "spec.volumes[].fc", Support: Refused, Note: noDriver},
	{Path: "spec.volumes[].gitRepo", Support: Refused, Note: "clone in an init container"},
	{Path: "spec.volumes[].gcePersistentDisk", Support: Refused, Note: gone},
	{Path: "spec.volumes[].awsElasticBlockStore", Support: Refused, Note: gone},
	{Path: "spec.volumes[].glusterfs", Support: Refused, Note: gone},
	{Path: "spec.volumes[].rbd", Support: Refused, Note: gone},
	{Path: "spec.volumes[].flexVolume", Support: Refused, Note: gone},
	{Path: "spec.volumes[].cinder", Support: Refused, Note: gone},
	{Path: "spec.volumes[].cephfs", Support: Refused, Note: gone},
	{Path: "spec.volumes[].flocker", Support: Refused, Note: gone},
	{Path: "spec.volumes[].azureFile", Support: Refused, Note: gone},
	{Path: "spec.volumes[].azureDisk", Support: Refused, Note: gone},
	{Path: "spec.volumes[].vsphereVolume", Support: Refused, Note: gone},
	{Path: "spec.volumes[].quobyte", Support: Refused, Note: gone},
	{Path: "spec.volumes[].photonPersistentDisk", Support: Refused, Note: gone},
	{Path: "spec.volumes[].portworxVolume", Support: Refused, Note: gone},
	{Path: "spec.volumes[].scaleIO", Support: Refused, Note: gone},
	{Path: "spec.volumes[].storageos", Support: Refused, Note: gone},
}
