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
	prefix := containerPrefix + "." + name
	rows := []Field{{Path: prefix, Support: Supported, Note: note}}
	rows = append(rows, execFields(prefix, "$(VAR) is expanded from variables with a value")...)
	rows = append(rows, httpFields(prefix)...)
	return append(rows,
		Field{Path: prefix + ".tcpSocket", Support: Supported},
		Field{Path: prefix + ".tcpSocket.port", Support: Supported, Note: "a number, or the name of one of the container's ports"},
		Field{Path: prefix + ".tcpSocket.host", Support: Supported, Note: "default: the pod"},
		Field{Path: prefix + ".grpc", Support: Supported, Note: "grpc.health.v1.Health/Check"},
		Field{Path: prefix + ".grpc.port", Support: Supported},
		Field{Path: prefix + ".grpc.service", Support: Supported, Note: "default: the server as a whole"},
		Field{Path: prefix + ".grpc.mode", Support: Supported, Note: "default: Plaintext; with TLS the certificate is not verified"},
		Field{Path: prefix + ".initialDelaySeconds", Support: Supported, Note: "default: 0; the first probe follows at once"},
		Field{Path: prefix + ".periodSeconds", Support: Supported, Note: "default: 10"},
		Field{Path: prefix + ".timeoutSeconds", Support: Supported, Note: "default: 1; a command is then killed"},
		Field{Path: prefix + ".successThreshold", Support: Supported, Note: "default: 1"},
		Field{Path: prefix + ".failureThreshold", Support: Supported, Note: "default: 3"},
		Field{Path: prefix + ".terminationGracePeriodSeconds", Support: Supported, Note: "default: the pod's"},
	)
}

func hookFields(name, note string) []Field {
	prefix := containerPrefix + ".lifecycle." + name
	rows := []Field{{Path: prefix, Support: Supported, Note: note}}
	rows = append(rows, execFields(prefix, "")...)
	rows = append(rows, httpFields(prefix)...)
	return append(rows,
		Field{Path: prefix + ".tcpSocket", Support: Refused, Note: "the kubelet does not support it: use exec or httpGet"},
		Field{Path: prefix + ".sleep{,.seconds}", Support: Supported},
	)
}

func execFields(prefix, note string) []Field {
	return []Field{
		{Path: prefix + ".exec", Support: Supported},
		{Path: prefix + ".exec.command", Support: Supported, Note: note},
	}
}

func httpFields(prefix string) []Field {
	return []Field{
		{Path: prefix + ".httpGet", Support: Supported, Note: "from the pod's network; nothing is needed in the image"},
		{Path: prefix + ".httpGet.path", Support: Supported, Note: "default: /"},
		{Path: prefix + ".httpGet.port", Support: Supported, Note: "a number, or the name of one of the container's ports"},
		{Path: prefix + ".httpGet.host", Support: Supported, Note: "default: the pod"},
		{Path: prefix + ".httpGet.scheme", Support: Supported, Note: "default: HTTP; with HTTPS the certificate is not verified"},
		{Path: prefix + ".httpGet.httpHeaders{,[].name,[].value}", Support: Supported},
		{Path: prefix + ".httpGet.protocol", Support: Supported, Note: "default: HTTP1"},
	}
}
