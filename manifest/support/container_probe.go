package support

import "slices"

// probeRows are the fields of a container's probes and hooks.
var probeRows = slices.Concat(
	probeFields("livenessProbe", "a container that fails it is stopped, and restarted by its policy"),
	probeFields("readinessProbe", "decides whether container and pod are ready"),
	probeFields("startupProbe", "holds back the other probes, and what waits for a sidecar"),
	[]Field{{Path: containerPrefix + ".lifecycle", Support: Done}},
	hookFields("postStart", "the container is started when it is done; those behind it in the list wait"),
	hookFields("preStop", "before the stop signal, within the grace"),
	[]Field{{Path: containerPrefix + ".lifecycle.stopSignal", Support: Done, Note: "default: the image's, else SIGTERM; needs spec.os.name"}},
)

func probeFields(name, note string) []Field {
	at := containerPrefix + "." + name
	rows := []Field{{Path: at, Support: Done, Note: note}}
	rows = append(rows, execFields(at, "$(VAR) is expanded from variables with a value")...)
	rows = append(rows, httpFields(at)...)
	return append(rows,
		Field{Path: at + ".tcpSocket", Support: Done},
		Field{Path: at + ".tcpSocket.port", Support: Done, Note: "a number, or the name of one of the container's ports"},
		Field{Path: at + ".tcpSocket.host", Support: Done, Note: "default: the pod"},
		Field{Path: at + ".grpc", Support: Done, Note: "grpc.health.v1.Health/Check"},
		Field{Path: at + ".grpc.port", Support: Done},
		Field{Path: at + ".grpc.service", Support: Done, Note: "default: the server as a whole"},
		Field{Path: at + ".grpc.mode", Support: Done, Note: "default: Plaintext; with TLS the certificate is not verified"},
		Field{Path: at + ".initialDelaySeconds", Support: Done, Note: "default: 0; the first probe comes right after it"},
		Field{Path: at + ".periodSeconds", Support: Done, Note: "default: 10"},
		Field{Path: at + ".timeoutSeconds", Support: Done, Note: "default: 1; a command is then killed"},
		Field{Path: at + ".successThreshold", Support: Done, Note: "default: 1"},
		Field{Path: at + ".failureThreshold", Support: Done, Note: "default: 3"},
		Field{Path: at + ".terminationGracePeriodSeconds", Support: Done, Note: "default: the pod's"},
	)
}

func hookFields(name, note string) []Field {
	at := containerPrefix + ".lifecycle." + name
	rows := []Field{{Path: at, Support: Done, Note: note}}
	rows = append(rows, execFields(at, "")...)
	rows = append(rows, httpFields(at)...)
	return append(rows,
		Field{Path: at + ".tcpSocket", Support: Refused, Note: "no kubelet does it: use exec or httpGet"},
		Field{Path: at + ".sleep{,.seconds}", Support: Done},
	)
}

func execFields(at, note string) []Field {
	return []Field{
		{Path: at + ".exec", Support: Done},
		{Path: at + ".exec.command", Support: Done, Note: note},
	}
}

func httpFields(at string) []Field {
	return []Field{
		{Path: at + ".httpGet", Support: Done, Note: "from the pod's network; nothing is needed in the image"},
		{Path: at + ".httpGet.path", Support: Done, Note: "default: /"},
		{Path: at + ".httpGet.port", Support: Done, Note: "a number, or the name of one of the container's ports"},
		{Path: at + ".httpGet.host", Support: Done, Note: "default: the pod"},
		{Path: at + ".httpGet.scheme", Support: Done, Note: "default: HTTP; with HTTPS the certificate is not verified"},
		{Path: at + ".httpGet.httpHeaders{,[].name,[].value}", Support: Done},
		{Path: at + ".httpGet.protocol", Support: Done, Note: "default: HTTP1"},
	}
}
