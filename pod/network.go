package pod

// NetworkMode is the way a pod's traffic leaves the pod.
type NetworkMode string

const (
	NetworkAuto       NetworkMode = ""           // chosen by the machine's capabilities
	NetworkNone       NetworkMode = "none"       // not at all: the pod has only its own loopback
	NetworkHost       NetworkMode = "host"       // the pod uses the host's network
	NetworkMasquerade NetworkMode = "masquerade" // the kernel masquerades packets with the host's address: for root, and IPv4
	NetworkTProxy     NetworkMode = "tproxy"     // the kernel redirects connections, and sockets of the host relay them
	NetworkNetstack   NetworkMode = "netstack"   // a user-space network stack relays them
)

// NetworkModes are the modes that a user can request, in the order of output.
var NetworkModes = []string{"auto", string(NetworkMasquerade), string(NetworkTProxy), string(NetworkNetstack), string(NetworkHost), string(NetworkNone)}
