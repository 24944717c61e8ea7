package support

import (
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// objectRows returns the fields that every kind except Pod has.
func objectRows(kind string) []Field {
	version := "v1"
	if kind == "NetworkPolicy" {
		version = "networking.k8s.io/v1"
	}
	rows := []Field{
		{Path: "apiVersion", Support: Supported, Note: version},
		{Path: "kind", Support: Supported, Note: kind},
		{Path: "metadata{,.name}", Support: Supported},
		{Path: "metadata.namespace", Support: Supported, Note: "default: default"},
		{Path: "metadata.{labels,annotations}", Support: Supported},
		{Path: "metadata.annotations[podrun.dev/compose-project]", Support: Supported, Note: "podrun convert sets it: podrun compose down removes the objects of its project"},
		{Path: "metadata.annotations[podrun.dev/*]", Support: Refused, Note: "unknown to this version of podrun"},
		{Path: "metadata.generateName", Support: Supported, Note: noteGenerateName},
		{Path: "metadata.generation", Support: Accepted, Note: "bookkeeping of an API server"},
	}
	for _, r := range metaRows {
		if r.Support == Accepted && r.Path != "status" {
			rows = append(rows, r)
		}
	}
	return expand(rows)
}

// tableOf returns every field of the objects of a supported kind.
func tableOf(kind string) []Field {
	if kind == "Pod" {
		return podTable()
	}
	if rows, ok := map[string][]Field{
		"ConfigMap": configMapRows, "Secret": secretRows, "PersistentVolumeClaim": claimRows, "PersistentVolume": persistentVolumeRows, "Service": serviceRows, "Namespace": namespaceRows,
		"Endpoints": endpointsRows, "EndpointSlice": endpointSliceRows, "ServiceAccount": serviceAccountRows, "NetworkPolicy": networkPolicyRows,
	}[kind]; ok {
		all := objectRows(kind)
		if kind == "EndpointSlice" {
			all[0].Note = "discovery.k8s.io/v1"
		}
		return append(all, expand(rows)...)
	}
	workload := pod.ObjectKind(kind)
	return append(workloadRows(workload), templateRows(TemplatePath(workload))...)
}

// statusRow is the field that podrun sets.
var statusRow = Field{Path: "status", Support: Accepted, Note: "podrun writes its own; the given one is dropped"}

const noteImmutable = "its data can no longer be changed, only deleted"

var configMapRows = []Field{
	{Path: "data", Support: Supported},
	{Path: "binaryData", Support: Supported, Note: "for volumes; variables are made of data"},
	{Path: "immutable", Support: Supported, Note: noteImmutable},
}

var secretRows = []Field{
	{Path: "type", Support: Supported, Note: "default: Opaque; types of Kubernetes are checked for their required keys; kubernetes.io/dockerconfigjson serves imagePullSecrets"},
	{Path: "data", Support: Supported, Note: "stored in memory only: a reboot clears it, and a unit's manifest creates it again"},
	{Path: "stringData", Support: Supported, Note: "plain text, put into data"},
	{Path: "immutable", Support: Supported, Note: noteImmutable},
}

var claimRows = []Field{
	statusRow,
	{Path: "spec", Support: Supported, Note: "a PersistentVolume, or a directory that remains when its pods are removed"},
	{Path: "spec.accessModes", Support: Supported, Note: "pods of one machine can share every claim"},
	{Path: "spec.resources", Support: Supported},
	{Path: "spec.resources.requests", Support: Supported, Note: "compared with the capacity of PersistentVolumes; a directory is as large as its file system"},
	{Path: "spec.resources.requests[storage]", Support: Supported},
	{Path: "spec.resources.requests[*]", Support: Refused, Note: "only storage"},
	{Path: "spec.resources.limits", Support: Accepted, Note: "a directory is as large as its file system"},
	{Path: "spec.storageClassName", Support: Supported, Note: "default: a directory of podrun; a name: a PersistentVolume of the class, if one matches, otherwise a directory; \"\": only a PersistentVolume without a class"},
	{Path: "spec.volumeMode", Support: Supported, Only: []string{"Filesystem"}, Note: "no block devices"},
	{Path: "spec.volumeName", Support: Supported, Note: "the PersistentVolume; the claim waits for it"},
	{Path: "spec.selector", Support: Supported, Note: "labels of PersistentVolumes; the claim waits for one"},
	{Path: "spec.selector.matchLabels", Support: Supported},
	{Path: "spec.selector.matchExpressions{,[].key,[].operator,[].values}", Support: Supported},
	{Path: "spec.{dataSource,dataSourceRef}", Support: Refused, Note: "a claim begins empty"},
	{Path: "spec.volumeAttributesClassName", Support: Accepted, Note: "there is one kind of storage"},
}

const noteOtherSource = "podrun mounts hostPath and local: it stores the volume, and a pod that needs it is an error"

// persistentVolumeRows are the fields of a PersistentVolume.
var persistentVolumeRows = []Field{
	statusRow,
	{Path: "spec", Support: Supported},
	{Path: "spec.capacity", Support: Supported},
	{Path: "spec.capacity[storage]", Support: Supported, Note: "compared with the request of a claim; a directory is as large as its file system"},
	{Path: "spec.capacity[*]", Support: Refused, Note: "only storage"},
	{Path: "spec.accessModes", Support: Supported, Note: "a claim is bound if all of its modes are among them"},
	{Path: "spec.persistentVolumeReclaimPolicy", Support: Supported, Only: []string{"Retain", "Delete"}, Note: "with Delete, too, the files stay and the volume becomes Released; for Recycle: delete the files, the PersistentVolume, and apply it again"},
	{Path: "spec.storageClassName", Support: Supported, Note: "a word by which claims find it; no StorageClass is needed"},
	{Path: "spec.volumeMode", Support: Supported, Only: []string{"Filesystem"}, Note: "no block devices"},
	{Path: "spec.mountOptions", Support: Accepted, Note: "of storage drivers"},
	{Path: "spec.volumeAttributesClassName", Support: Accepted, Note: "of storage drivers"},
	{Path: "spec.claimRef", Support: Supported, Note: "reserves the volume for a claim"},
	{Path: "spec.claimRef.{namespace,name,uid,kind,apiVersion}", Support: Supported},
	{Path: "spec.claimRef.{resourceVersion,fieldPath}", Support: Accepted, Note: "bookkeeping of an API server"},
	{Path: "spec.nodeAffinity", Support: Supported, Note: "a volume of another machine is bound to no claim; this one has the labels kubernetes.io/hostname, kubernetes.io/os and kubernetes.io/arch"},
	{Path: "spec.nodeAffinity.required", Support: Supported},
	{Path: "spec.nodeAffinity.required.nodeSelectorTerms", Support: Supported},
	{Path: "spec.nodeAffinity.required.nodeSelectorTerms[].matchExpressions{,[].key,[].operator,[].values}", Support: Supported},
	{Path: "spec.nodeAffinity.required.nodeSelectorTerms[].matchFields{,[].key,[].operator,[].values}", Support: Supported},
	{Path: "spec.hostPath", Support: Supported, Note: "with the user's own rights; files keep their owner: fsGroup does not apply"},
	{Path: "spec.hostPath.{path,type}", Support: Supported, Note: "as for a hostPath volume of a Pod"},
	{Path: "spec.local", Support: Supported, Note: "an existing directory; files keep their owner: fsGroup does not apply"},
	{Path: "spec.local.path", Support: Supported},
	{Path: "spec.local.fsType", Support: Accepted, Note: "of block devices"},
	{Path: "spec.{nfs,csi,iscsi,fc}", Support: Accepted, Note: noteOtherSource},
	{Path: "spec.{gcePersistentDisk,awsElasticBlockStore,glusterfs,rbd,flexVolume,cinder,cephfs,flocker}", Support: Accepted, Note: noteOtherSource},
	{Path: "spec.{azureFile,azureDisk,vsphereVolume,quobyte,photonPersistentDisk,portworxVolume,scaleIO}", Support: Accepted, Note: noteOtherSource},
	{Path: "spec.storageos", Support: Accepted, Note: noteOtherSource},
}

const noteOneNode = "there is one machine"

var serviceRows = []Field{
	statusRow,
	{Path: "metadata.annotations[podrun.dev/names]", Support: Supported, Note: "my_db,Shop.DB: further names that pods of the namespace resolve; they need not be names of Kubernetes"},
	{Path: "spec", Support: Supported},
	{Path: "spec.type", Support: Supported, Note: "default: ClusterIP; LoadBalancer is as NodePort: its external address stays <pending>"},
	{Path: "spec.selector", Support: Supported, Note: "without one the Service leads to the addresses of its Endpoints and EndpointSlices; of node ports, to none"},
	{Path: "spec.clusterIP", Support: Supported, Note: "None makes it headless; an address is chosen by podrun, for each of its families, and stays"},
	{Path: "spec.{clusterIPs,externalName,publishNotReadyAddresses}", Support: Supported},
	{Path: "spec.sessionAffinity", Support: Supported, Note: "with ClientIP a client keeps its pod while the pod is ready, by the address and by node ports; a connection by a node port ends, at the latest, with the pod that has accepted it, which may be another pod of the Service"},
	{Path: "spec.sessionAffinityConfig{,.clientIP}", Support: Supported},
	{Path: "spec.sessionAffinityConfig.clientIP.timeoutSeconds", Support: Supported, Note: "default: 10800; a client that has not connected for that time may get another pod"},
	{Path: "spec.ports{,[].name}", Support: Supported},
	{Path: "spec.ports[].protocol", Support: Supported, Only: []string{"TCP", "UDP"}, Note: "default: TCP"},
	{Path: "spec.ports[].appProtocol", Support: Accepted, Note: "a hint for balancers of other layers"},
	{Path: "spec.ports[].port", Support: Supported},
	{Path: "spec.ports[].targetPort", Support: Supported, Note: "default: port"},
	{Path: "spec.ports[].nodePort", Support: Supported, Note: "default: a free one of 30000 to 32767, which is kept; open while a pod is ready; each ready pod accepts some of the connections and sees the client's address"},
	{Path: "spec.{ipFamilies,ipFamilyPolicy}", Support: Supported, Note: "default: IPv4 and SingleStack, as in a cluster whose first family is IPv4: no AAAA record"},
	{Path: "spec.{internalTrafficPolicy,externalTrafficPolicy,trafficDistribution,healthCheckNodePort}", Support: Accepted, Note: noteOneNode},
	{Path: "spec.externalIPs", Support: Refused, Note: "addresses of other machines"},
	{Path: "spec.loadBalancerIP", Support: Accepted, Note: "there is no load balancer outside the machine"},
	{Path: "spec.loadBalancerSourceRanges", Support: Refused, Note: "podrun does not filter by source"},
	{Path: "spec.loadBalancerClass", Support: Accepted, Note: "there is no load balancer outside the machine"},
	{Path: "spec.allocateLoadBalancerNodePorts", Support: Supported, Note: "only true: podrun implements LoadBalancer by node ports"},
}

const noteEndpoints = "for a Service without a selector; of pods or of other hosts: if any is of another host, connections go to those only"

var endpointsRows = []Field{
	{Path: "subsets", Support: Supported, Note: noteEndpoints},
	{Path: "subsets[].{addresses,addresses[].ip,addresses[].hostname}", Support: Supported},
	{Path: "subsets[].addresses[].{nodeName,targetRef}", Support: Accepted, Note: noteOneNode},
	{Path: "subsets[].notReadyAddresses", Support: Supported, Note: "used only by a Service with publishNotReadyAddresses"},
	{Path: "subsets[].notReadyAddresses[].{ip,hostname}", Support: Supported},
	{Path: "subsets[].notReadyAddresses[].{nodeName,targetRef}", Support: Accepted, Note: noteOneNode},
	{Path: "subsets[].{ports,ports[].name,ports[].port}", Support: Supported, Note: "a port of the Service leads to the port of its name"},
	{Path: "subsets[].ports[].protocol", Support: Supported, Only: []string{"TCP", "UDP"}, Note: "default: TCP"},
	{Path: "subsets[].ports[].appProtocol", Support: Accepted, Note: "a hint for balancers of other layers"},
}

var endpointSliceRows = []Field{
	{Path: "addressType", Support: Supported, Only: []string{"IPv4", "IPv6"}},
	{Path: "endpoints", Support: Supported, Note: noteEndpoints + "; the label kubernetes.io/service-name names the Service"},
	{Path: "endpoints[].addresses", Support: Supported, Note: "the first is used"},
	{Path: "endpoints[].{hostname,conditions}", Support: Supported},
	{Path: "endpoints[].conditions.ready", Support: Supported, Note: "default: true; with false used only by a Service with publishNotReadyAddresses"},
	{Path: "endpoints[].conditions.{serving,terminating}", Support: Accepted, Note: "ready decides"},
	{Path: "endpoints[].{targetRef,nodeName,zone,hints,deprecatedTopology}", Support: Accepted, Note: noteOneNode},
	{Path: "ports", Support: Supported},
	{Path: "ports[].name", Support: Supported, Note: "a port of the Service leads to the port of its name"},
	{Path: "ports[].protocol", Support: Supported, Only: []string{"TCP", "UDP"}, Note: "default: TCP"},
	{Path: "ports[].port", Support: Supported},
	{Path: "ports[].appProtocol", Support: Accepted, Note: "a hint for balancers of other layers"},
}

var serviceAccountRows = []Field{
	{Path: "imagePullSecrets", Support: Supported, Note: "given to new pods of the account, by default the account default, that have none of their own"},
	{Path: "imagePullSecrets[].name", Support: Supported},
	{Path: "{secrets,automountServiceAccountToken}", Support: Accepted, Note: "podrun has no API server"},
}

var namespaceRows = []Field{
	statusRow,
	{Path: "spec", Support: Accepted, Note: "bookkeeping of an API server"},
}

var networkPolicyRows = slices.Concat([]Field{
	{Path: "spec", Support: Supported},
	{Path: "spec.podSelector", Support: Supported, Note: "pods with hostNetwork are not selected"},
	{Path: "spec.podSelector{.matchLabels,.matchExpressions}", Support: Supported},
	{Path: "spec.podSelector.matchExpressions[]{.key,.operator,.values}", Support: Supported},
	{Path: "spec.policyTypes", Support: Supported, Note: "default: Ingress, and Egress if there are rules for it"},
}, policyRuleRows("ingress", "from"), policyRuleRows("egress", "to"))

// policyRuleRows returns the fields of the rules of one direction of a NetworkPolicy.
func policyRuleRows(traffic, peers string) []Field {
	prefix := "spec." + traffic
	peer := prefix + "[]." + peers + "[]"
	rows := []Field{
		{Path: prefix + "{,[].ports}", Support: Supported},
		{Path: prefix + "[].ports[].protocol", Support: Supported, Only: []string{"TCP", "UDP"}, Note: "default: TCP"},
		{Path: prefix + "[].ports[]{.port,.endPort}", Support: Supported},
		{Path: prefix + "[]." + peers, Support: Supported},
		{Path: peer + ".ipBlock{,.cidr,.except}", Support: Supported},
	}
	for _, selector := range []string{".podSelector", ".namespaceSelector"} {
		rows = append(rows,
			Field{Path: peer + selector + "{,.matchLabels,.matchExpressions}", Support: Supported},
			Field{Path: peer + selector + ".matchExpressions[]{.key,.operator,.values}", Support: Supported})
	}
	return rows
}
