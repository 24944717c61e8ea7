// Package server is the kubelet's API (pkg/kubelet/server). Through it the API server, and so kubectl, reads logs, executes
// commands in containers and connects to pods.
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/httpserver"
)

// Port is the port of the kubelet's API.
const Port = 10250

// Streams are the streams of a command or of an attachment. A stream that is not requested is nil.
type Streams struct {
	In       io.Reader
	Out, Err io.WriteCloser
	Terminal bool
	Sizes    <-chan Size // of the terminal
}

// Size is the size of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// Pods reaches the node's pods.
type Pods interface {
	// Find returns the pod of a namespace and a name, and of a UID unless it is empty; nil if there is none.
	Find(namespace, name string, uid types.UID) *corev1.Pod
	List() []*corev1.Pod
	// Metrics returns what the node and its pods use, in the Prometheus text format.
	Metrics() ([]byte, error)
	// AgentMetrics returns what the agent counts of itself and the pods, in the same format.
	AgentMetrics() ([]byte, error)
	// ProbeMetrics returns how often the pods' probes have succeeded and failed, in the same format.
	ProbeMetrics() ([]byte, error)
	// Summary returns what the node and its pods use as JSON, in the format of /stats/summary.
	Summary() ([]byte, error)
	// Logs writes the log of a container.
	Logs(ctx context.Context, p *corev1.Pod, container string, o *corev1.PodLogOptions, out io.Writer) error
	// Exec runs a command in a container, and returns its exit code.
	Exec(ctx context.Context, p *corev1.Pod, container string, command []string, s Streams) (code int, err error)
	// Attach connects streams to a container until the container ends or, if only input is requested, until the input
	// ends.
	Attach(ctx context.Context, p *corev1.Pod, container string, s Streams) error
	// PortForward connects a stream to a port of a pod until one side ends.
	PortForward(ctx context.Context, p *corev1.Pod, port int32, stream io.ReadWriteCloser) error
}

// Server is the server of a node.
type Server struct {
	Node     string
	Pods     Pods
	Reviewer Reviewer
	ClientCA []byte // PEM: the authorities of clients' certificates
	// Certificate returns the current serving certificate.
	Certificate func() (*tls.Certificate, error)
	Config      Config
	LogDir      string // of the host
}

// Config is what podrun has of the kubelet's configuration (k8s.io/kubelet/config/v1beta1).
type Config struct {
	Port          int32    `json:"port"`
	MaxPods       int64    `json:"maxPods"`
	ClusterDomain string   `json:"clusterDomain"`
	ClusterDNS    []string `json:"clusterDNS,omitempty"`
}

// stallTime is how long a client may take to send the head of a request, or to take output.
const stallTime = 30 * time.Second

// Serve serves on a listener until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.ClientCA) {
		return fmt.Errorf("serve the node's API: the certificate authority of clients has no certificate")
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.Certificate() },
	}
	return httpserver.ServeTLS(ctx, l, config, s.handler(), stallTime)
}

// handler returns the paths of the API, for clients that may use them.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /healthz/{check}", ok)
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /pods/{$}", s.pods)
	mux.HandleFunc("GET /runningpods/{$}", s.runningPods)
	mux.HandleFunc("GET /configz", s.configz)
	mux.HandleFunc("GET /metrics", serveMetrics(s.Pods.AgentMetrics))
	mux.HandleFunc("GET /metrics/resource", serveMetrics(s.Pods.Metrics))
	mux.HandleFunc("GET /metrics/cadvisor", serveMetrics(s.Pods.Metrics))
	mux.HandleFunc("GET /metrics/probes", serveMetrics(s.Pods.ProbeMetrics))
	mux.HandleFunc("GET /logs/", s.nodeLogs)
	mux.HandleFunc("GET /stats/summary", s.summary)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, method := range []string{http.MethodGet, http.MethodPost} { // GET for websockets
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", s.exec)
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{uid}/{container}", s.exec)
		mux.HandleFunc(method+" /attach/{namespace}/{pod}/{container}", s.attach)
		mux.HandleFunc(method+" /attach/{namespace}/{pod}/{uid}/{container}", s.attach)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", s.portForward)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}/{uid}", s.portForward)
	}
	return newAuthorizer(s.Node, s.Reviewer).wrap(mux)
}

// pods lists the node's pods.
func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	s.list(w, func(*corev1.Pod) bool { return true })
}

// runningPods lists the node's pods that run.
func (s *Server) runningPods(w http.ResponseWriter, _ *http.Request) {
	s.list(w, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
}

func (s *Server) list(w http.ResponseWriter, selects func(*corev1.Pod) bool) {
	list := &corev1.PodList{Items: []corev1.Pod{}}
	list.APIVersion, list.Kind = "v1", "PodList"
	for _, p := range s.Pods.List() {
		if selects(p) {
			list.Items = append(list.Items, *p)
		}
	}
	writeJSON(w, list)
}

// configz writes the configuration.
func (s *Server) configz(w http.ResponseWriter, _ *http.Request) {
	type kubelet struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Config
	}
	writeJSON(w, map[string]kubelet{"kubeletconfig": {"KubeletConfiguration", "kubelet.config.k8s.io/v1beta1", s.Config}})
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails if the client has gone
}

// serveMetrics returns a handler that writes the metrics that read returns.
func serveMetrics(read func() ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := read()
		if err != nil && len(text) == 0 {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(text) // resource_scrape_error in it reports what is missing
	}
}

// summary writes what the node and its pods use, as JSON.
func (s *Server) summary(w http.ResponseWriter, _ *http.Request) {
	text, err := s.Pods.Summary()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// target returns the pod and the container that a request names. Otherwise it answers the request.
func (s *Server) target(w http.ResponseWriter, r *http.Request) (p *corev1.Pod, container string, ok bool) {
	name := r.PathValue("pod")
	p = s.Pods.Find(r.PathValue("namespace"), name, types.UID(r.PathValue("uid")))
	if p == nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", name), http.StatusNotFound)
		return nil, "", false
	}
	container = r.PathValue("container")
	if container != "" && !hasContainer(p, container) {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", container, name), http.StatusNotFound)
		return nil, "", false
	}
	return p, container, true
}

func hasContainer(p *corev1.Pod, name string) bool {
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == name {
			return true
		}
	}
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == name {
			return true
		}
	}
	for i := range p.Spec.EphemeralContainers {
		if p.Spec.EphemeralContainers[i].Name == name {
			return true
		}
	}
	return false
}
