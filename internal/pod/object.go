package pod

import (
	"encoding/json"
	"time"
)

// Object is one object of the machine that is not a pod: pods refer to it by name. It is one file of the store.
// Of the fields for kinds only the field of its own kind is set, except that a Service of a cluster also has
// Endpoints.
type Object struct {
	Kind      ObjectKind `json:"kind"`
	Namespace string     `json:"namespace,omitempty"` // "" for the kinds that are in no namespace
	Name      string     `json:"name"`
	UID       string     `json:"uid"`
	CreatedAt time.Time  `json:"createdAt"`
	Revision  int64      `json:"revision"` // 1, plus one with every change

	GenerateName string `json:"generateName,omitempty"` // the prefix from which podrun made the name

	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	Owner    *Owner `json:"owner,omitempty"`    // the object that made it; it is removed with its owner
	Deleting bool   `json:"deleting,omitempty"` // it is removed once everything that it has made is gone

	RequireLimits bool  `json:"requireLimits,omitempty"` // for a workload: of its pods
	TLSVerify     *bool `json:"tlsVerify,omitempty"`     // for a workload: how its pods' images are pulled; nil: the default

	DefaultedPullPolicies []string `json:"unsetPull,omitempty"` // for a workload: the images of its template for which Spec has a defaulted pull policy

	ConfigMap *ConfigMap `json:"configMap,omitempty"`
	Secret    *Secret    `json:"secret,omitempty"`
	Claim     *Claim     `json:"claim,omitempty"`
	Service   *Service   `json:"service,omitempty"`
	Endpoints *Endpoints `json:"endpoints,omitempty"` // of an Endpoints or an EndpointSlice, and of a Service of a cluster

	ServiceAccount *ServiceAccount `json:"serviceAccount,omitempty"`

	PersistentVolume *PersistentVolume `json:"persistentVolume,omitempty"`
	NetworkPolicy    *NetworkPolicy    `json:"networkPolicy,omitempty"`

	// Spec is the Kubernetes spec as applied, with defaults, for output only. No decision depends
	// on it.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// KindNode is the kind of the owner of objects that are copies of a Kubernetes cluster's objects.
const KindNode ObjectKind = "Node"

// IsFromCluster reports whether an object is a copy of an object of the Kubernetes cluster whose node this host
// is.
func (o *Object) IsFromCluster() bool { return o.Owner != nil && o.Owner.Kind == KindNode }

// Owner names the object that made an object or a pod.
type Owner struct {
	Kind ObjectKind `json:"kind"`
	Name string     `json:"name"`
	UID  string     `json:"uid"`
}

// ObjectKind is a kind as manifests spell it.
type ObjectKind string

const (
	KindConfigMap ObjectKind = "ConfigMap"
	KindSecret    ObjectKind = "Secret"
	KindClaim     ObjectKind = "PersistentVolumeClaim"
	KindService   ObjectKind = "Service"
	KindNamespace ObjectKind = "Namespace"
	KindVolume    ObjectKind = "PersistentVolume"

	KindEndpoints      ObjectKind = "Endpoints"
	KindEndpointSlice  ObjectKind = "EndpointSlice"
	KindServiceAccount ObjectKind = "ServiceAccount"
	KindNetworkPolicy  ObjectKind = "NetworkPolicy"
)

// ClusterScoped reports whether objects of the kind are in no namespace.
func (k ObjectKind) ClusterScoped() bool { return k == KindNamespace || k == KindVolume }

// ConcernsServices reports whether objects of a kind decide where connections to Services go.
func (k ObjectKind) ConcernsServices() bool {
	return k == KindService || k == KindEndpoints || k == KindEndpointSlice
}

// ConfigMap has keys of two kinds; no key is in both.
type ConfigMap struct {
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
	Immutable  bool              `json:"immutable,omitempty"`
}

// Secret is stored in memory-backed storage only. Its values are passed to containers only.
type Secret struct {
	Type      string            `json:"type"` // "Opaque", "kubernetes.io/dockerconfigjson", …
	Data      map[string][]byte `json:"data,omitempty"`
	Immutable bool              `json:"immutable,omitempty"`
}

// Claim is a request for storage that outlives pods: a PersistentVolume, or a directory that podrun
// makes.
type Claim struct {
	AccessModes     []string  `json:"accessModes,omitempty"` // "ReadWriteOnce", …
	Request         int64     `json:"request,omitempty"`     // bytes asked for; not enforced
	Class           *string   `json:"class,omitempty"`       // nil: not set; "": only a PersistentVolume without a class
	AttributesClass string    `json:"attributesClass,omitempty"`
	VolumeName      string    `json:"volumeName,omitempty"` // the PersistentVolume that the claim requests; "": any that matches
	Selector        *Selector `json:"selector,omitempty"`   // of PersistentVolumes

	Bound  bool    `json:"-"` // derived, for output: it has a volume or a directory
	Volume *Object `json:"-"` // derived, for output: the PersistentVolume that it is bound to
}

// Service is a name and an address for a group of pods.
type Service struct {
	Type         ServiceType       `json:"type"`
	Selector     map[string]string `json:"selector,omitempty"` // empty: selects no pods
	Ports        []ServicePort     `json:"ports,omitempty"`
	ExternalName string            `json:"externalName,omitempty"`

	// Families are the IP families of its addresses and of its DNS records, the main one first. Empty: both, which
	// is so for Services of earlier versions.
	Families []string `json:"families,omitempty"`

	// ClusterIPs are the virtual addresses, the main one first; "None" alone makes the Service
	// headless. Empty: no address is assigned yet.
	ClusterIPs []string `json:"clusterIPs,omitempty"`

	// Names are further names of the Service in its namespace, in lower case, which podrun's resolver answers.
	Names []string `json:"names,omitempty"`

	PublishNotReady bool  `json:"publishNotReady,omitempty"` // pods count before they are ready
	AffinitySeconds int32 `json:"affinitySeconds,omitempty"` // of sessionAffinity ClientIP; 0: no affinity
}

// IP families of Services, as Kubernetes names them.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// Headless reports whether the Service has no address of its own.
func (s *Service) Headless() bool { return len(s.ClusterIPs) > 0 && s.ClusterIPs[0] == "None" }

// ServiceType is Kubernetes' type of a Service.
type ServiceType string

const (
	ServiceClusterIP    ServiceType = "ClusterIP"
	ServiceNodePort     ServiceType = "NodePort"
	ServiceLoadBalancer ServiceType = "LoadBalancer"
	ServiceExternalName ServiceType = "ExternalName"
)

// OpensPorts reports whether a Service has node ports.
func (t ServiceType) OpensPorts() bool { return t == ServiceNodePort || t == ServiceLoadBalancer }

// ServicePort maps a port of the Service to a port of its pods: TargetName, a container's named
// port, if it is set, else TargetPort.
type ServicePort struct {
	Name       string `json:"name,omitempty"`
	Protocol   string `json:"protocol"` // "TCP", "UDP", "SCTP"
	Port       int32  `json:"port"`
	TargetPort int32  `json:"targetPort,omitempty"`
	TargetName string `json:"targetName,omitempty"`
	NodePort   int32  `json:"nodePort,omitempty"`
}

// Endpoints are addresses behind a Service without a selector.
type Endpoints struct {
	Service string            `json:"service"` // its name
	List    []ServiceEndpoint `json:"list,omitempty"`
}

// ServiceEndpoint is one address behind a Service, of a pod or of another host.
type ServiceEndpoint struct {
	Address  string         `json:"address"`
	Hostname string         `json:"hostname,omitempty"`
	NotReady bool           `json:"notReady,omitempty"`
	Remote   bool           `json:"remote,omitempty"` // it is on another node of the cluster
	Pod      string         `json:"pod,omitempty"`    // the name of the pod, if the address belongs to a pod of this host
	Ports    []EndpointPort `json:"ports,omitempty"`
}

// EndpointPort is the port that a Service's port of the same name leads to.
type EndpointPort struct {
	Name     string `json:"name,omitempty"`
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
}

// ServiceAccount has the settings of pods that name it in spec.serviceAccountName.
type ServiceAccount struct {
	PullSecrets []string `json:"pullSecrets,omitempty"` // for pods without imagePullSecrets of their own
}

// Kinds of workloads: objects that make pods. They are stored as objects, and their state beside
// them.
const (
	KindDeployment  ObjectKind = "Deployment"
	KindReplicaSet  ObjectKind = "ReplicaSet"
	KindReplication ObjectKind = "ReplicationController" // the predecessor of ReplicaSet
	KindStatefulSet ObjectKind = "StatefulSet"
	KindDaemonSet   ObjectKind = "DaemonSet"
	KindJob         ObjectKind = "Job"
	KindCronJob     ObjectKind = "CronJob"
)

// IsReplicaSet reports whether a kind is ReplicaSet or its predecessor, ReplicationController.
func (k ObjectKind) IsReplicaSet() bool { return k == KindReplicaSet || k == KindReplication }

// Workloads returns the kinds that make pods, in the order of output.
func Workloads() []ObjectKind {
	return []ObjectKind{KindDeployment, KindReplicaSet, KindReplication, KindStatefulSet, KindDaemonSet, KindJob, KindCronJob}
}
