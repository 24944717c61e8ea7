package pod

// Probe checks a container periodically. Its numbers have the API server's defaults.
type Probe struct {
	Handler
	InitialDelaySeconds int64  `json:"initialDelaySeconds,omitempty"`
	PeriodSeconds       int64  `json:"periodSeconds"`
	TimeoutSeconds      int64  `json:"timeoutSeconds"`
	SuccessThreshold    int    `json:"successThreshold"`
	FailureThreshold    int    `json:"failureThreshold"`
	GraceSeconds        *int64 `json:"graceSeconds,omitempty"` // replaces the pod's when its failure stops the container
}

// Handler is the action of a probe or a hook; exactly one field is set.
type Handler struct {
	Exec         []string   `json:"exec,omitempty"` // the whole argv, run in the container
	HTTP         *HTTPGet   `json:"http,omitempty"`
	TCP          *TCPSocket `json:"tcp,omitempty"`          // probes only
	GRPC         *GRPC      `json:"grpc,omitempty"`         // probes only
	SleepSeconds *int64     `json:"sleepSeconds,omitempty"` // hooks only
}

// HTTPGet is a GET request. An empty Host means the pod itself.
type HTTPGet struct {
	TLS     bool     `json:"tls,omitempty"` // the certificate is not verified
	Host    string   `json:"host,omitempty"`
	Port    int      `json:"port"`
	Path    string   `json:"path"` // with its query
	Headers []Header `json:"headers,omitempty"`
	HTTP2   bool     `json:"http2,omitempty"` // without TLS, by prior knowledge
}

// Header is one line of a request's header; a name may occur twice.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// TCPSocket is a connection that is opened and closed. An empty Host means the pod itself.
type TCPSocket struct {
	Host string `json:"host,omitempty"`
	Port int    `json:"port"`
}

// GRPC is a call of grpc.health.v1.Health/Check of the pod.
type GRPC struct {
	Port    int    `json:"port"`
	Service string `json:"service,omitempty"`
	TLS     bool   `json:"tls,omitempty"` // the certificate is not verified
}
