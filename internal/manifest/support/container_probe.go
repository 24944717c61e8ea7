package support

import "slices"

// probeRows are the fields of a container's probes and hooks.
var probeRows = slices.Concat(
	probeFields("livenessProbe", "a container that fails it is stopped, and restarted by its policy"),
	probeFields("readinessProbe", "decides whether container and pod are ready"),
	probeFields("startupProbe", "delays the other probes, and containers after a sidecar"),
	[]Field{{Path: containerPrefix + ".lifecycle", Support: Supported}},
	hookFields("postStart", "the status shows the container as running when the hook has ended; later containers of the list wait"),
	hookFields("preStop", "before the stop signal, within the grace"),
	[]Field{{Path: containerPrefix + ".lifecycle.stopSignal", Support: Supported, Note: "default: the image's, else SIGTERM; needs spec.os.name"}},
)

func probeFields(name, note string) []Field {
	at := containerPrefix + "." + name
	rows := []Field{{Path: at, Support: Supported, Note: note}}
	rows = append(rows, execFields(at, "$(VAR) is expanded from variables with a value")...)
	rows = append(rows, httpFields(at)...)
	return append(rows,
		Field{Path: at + ".tcpSocket", Support: Supported},
		Field{Path: at + ".tcpSocket.port", Support: Supported, Note: "a number, or the name of one of the container's ports"},
		Field{Path: at + ".tcpSocket.host", Support: Supported, Note: "default: the pod"},
		Field{Path: at + ".grpc", Support: Supported, Note: "grpc.health.v1.Health/Check"},
		Field{Path: at + ".grpc.port", Support: Supported},
		Field{Path: at + ".grpc.service", Support: Supported, Note: "default: the server as a whole"},
		Field{Path: at + ".grpc.mode", Support: Supported, Note: "default: Plaintext; with TLS the certificate is not verified"},
		Field{Path: at + ".initialDelaySeconds", Support: Supported, Note: "default: 0; the first probe follows at once"},
		Field{Path: at + ".periodSeconds", Support: Supported, Note: "default: 10"},
		Field{Path: at + ".timeoutSeconds", Support: Supported, Note: "default: 1; a command is then killed"},
		Field{Path: at + ".successThreshold", Support: Supported, Note: "default: 1"},
		Field{Path: at + ".failureThreshold", Support: Supported, Note: "default: 3"},
		Field{Path: at + ".terminationGracePeriodSeconds", Support: Supported, Note: "default: the pod's"},
	)
}

func hookFields(name, note string) []Field {
	at := containerPrefix + ".lifecycle." + name
	rows := []Field{{Path: at, Support: Supported, Note: note}}
	rows = append(rows, execFields(at, "")...)
	rows = append(rows, httpFields(at)...)
	return append(rows,
		Field{Path: at + ".tcpSocket", Support: Refused, Note: "the kubelet does not support it: use exec or httpGet"},
		Field{Path: at + ".sleep{,.seconds}", Support: Supported},
	)
}

func execFields(at, note string) []Field {
	return []Field{
		{Path: at + ".exec", Support: Supported},
		{Path: at + ".exec.command", Support: Supported, Note: note},
	}
}

func httpFields(at string) []Field {
	return []Field{
		{Path: at + ".httpGet", Support: Supported, Note: "from the pod's network; nothing is needed in the image"},
		{Path: at + ".httpGet.path", Support: Supported, Note: "default: /"},
		{Path: at + ".httpGet.port", Support: Supported, Note: "a number, or the name of one of the container's ports"},
		{Path: at + ".httpGet.host", Support: Supported, Note: "default: the pod"},
		{Path: at + ".httpGet.scheme", Support: Supported, Note: "default: HTTP; with HTTPS the certificate is not verified"},
		{Path: at + ".httpGet.httpHeaders{,[].name,[].value}", Support: Supported},
		{Path: at + ".httpGet.protocol", Support: Supported, Note: "default: HTTP1"},
	}
}
