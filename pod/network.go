package pod

// NetworkMode is how a pod reaches the world.
type NetworkMode string

const (
	NetworkAuto       NetworkMode = ""           // by what the machine can do
	NetworkNone       NetworkMode = "none"       // it does not: its own loopback is all there is
	NetworkHost       NetworkMode = "host"       // it is in the host's network
	NetworkMasquerade NetworkMode = "masquerade" // the kernel leads packets out, in the host's name: for root, and IPv4
	NetworkTProxy     NetworkMode = "tproxy"     // the kernel takes connections, sockets of the host pass them on
	NetworkNetstack   NetworkMode = "netstack"   // a network stack in user space does
)

// NetworkModes are those that can be asked for, in the order in which they are told.
var NetworkModes = []string{"auto", string(NetworkMasquerade), string(NetworkTProxy), string(NetworkNetstack), string(NetworkHost), string(NetworkNone)}
