package pod

import (
	"encoding/json"
	"time"
)

// Object is one object of the machine that is not a pod: what pods refer to by name.
// It is one file of the store; of the fields for kinds, that of its own is set.
type Object struct {
	Kind      ObjectKind `json:"kind"`
	Namespace string     `json:"namespace,omitempty"` // "" for a Namespace
	Name      string     `json:"name"`
	UID       string     `json:"uid"`
	CreatedAt time.Time  `json:"createdAt"`
	Revision  int64      `json:"revision"` // 1, and one more with every change

	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	Owner    *Owner `json:"owner,omitempty"`    // what has made it, and goes with it
	Deleting bool   `json:"deleting,omitempty"` // it goes when what it has made is gone

	RequireLimits bool  `json:"requireLimits,omitempty"` // of a workload: of its pods
	TLSVerify     *bool `json:"tlsVerify,omitempty"`     // of a workload: how its pods' images are pulled; nil: as usual

	UnsetPull []string `json:"unsetPull,omitempty"` // of a workload: its template's images without a pull policy; Spec has the default

	ConfigMap *ConfigMap `json:"configMap,omitempty"`
	Secret    *Secret    `json:"secret,omitempty"`
	Claim     *Claim     `json:"claim,omitempty"`
	Service   *Service   `json:"service,omitempty"`

	// Spec is the Kubernetes spec as it was applied, with defaults, for those who show
	// it. Nothing is decided by it.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// Owner names what has made an object or a pod.
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
)

// ConfigMap has keys of two kinds, of which none is in both.
type ConfigMap struct {
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
	Immutable  bool              `json:"immutable,omitempty"`
}

// Secret is kept in memory-backed storage only. Its values go nowhere but into
// containers.
type Secret struct {
	Type      string            `json:"type"` // "Opaque", "kubernetes.io/dockerconfigjson", …
	Data      map[string][]byte `json:"data,omitempty"`
	Immutable bool              `json:"immutable,omitempty"`
}

// Claim is a directory that outlives pods.
type Claim struct {
	AccessModes []string `json:"accessModes,omitempty"` // "ReadWriteOnce", …
	Request     int64    `json:"request,omitempty"`     // bytes asked for; not enforced
}

// Service is a name and an address for pods.
type Service struct {
	Type         ServiceType       `json:"type"`
	Selector     map[string]string `json:"selector,omitempty"` // none: no pod is meant
	Ports        []ServicePort     `json:"ports,omitempty"`
	ExternalName string            `json:"externalName,omitempty"`

	// ClusterIPs are the virtual addresses, the first one the main one; "None" alone
	// makes it headless. None: it has not been given any.
	ClusterIPs []string `json:"clusterIPs,omitempty"`

	PublishNotReady bool  `json:"publishNotReady,omitempty"` // pods count before they are ready
	AffinitySeconds int32 `json:"affinitySeconds,omitempty"` // of sessionAffinity ClientIP; 0: no affinity
}

// Headless says whether the Service has no address of its own.
func (s *Service) Headless() bool { return len(s.ClusterIPs) > 0 && s.ClusterIPs[0] == "None" }

// ServiceType is Kubernetes' type of a Service.
type ServiceType string

const (
	ServiceClusterIP    ServiceType = "ClusterIP"
	ServiceNodePort     ServiceType = "NodePort"
	ServiceLoadBalancer ServiceType = "LoadBalancer"
	ServiceExternalName ServiceType = "ExternalName"
)

// OpensPorts says whether a Service has ports of the machine.
func (t ServiceType) OpensPorts() bool { return t == ServiceNodePort || t == ServiceLoadBalancer }

// ServicePort leads from a port of the Service to one of its pods: TargetName, a port
// of a container, if it is set, else TargetPort.
type ServicePort struct {
	Name       string `json:"name,omitempty"`
	Protocol   string `json:"protocol"` // "TCP", "UDP", "SCTP"
	Port       int32  `json:"port"`
	TargetPort int32  `json:"targetPort,omitempty"`
	TargetName string `json:"targetName,omitempty"`
	NodePort   int32  `json:"nodePort,omitempty"`
}
