package podutil

import (
	"strings"
	"testing"
)

// TestPublishedPort checks the forms of podman's --publish.
func TestPublishedPort(t *testing.T) {
	for text, want := range map[string]PublishedPort{
		"80":                     {"", 0, 80, 1, "TCP"},
		"127.0.0.1::80/udp":      {"127.0.0.1", 0, 80, 1, "UDP"},
		"8080:80":                {"", 8080, 80, 1, "TCP"},
		":8080:80/tcp":           {"", 8080, 80, 1, "TCP"},
		"0.0.0.0:53:53/udp":      {"0.0.0.0", 53, 53, 1, "UDP"},
		"127.0.0.1:80-82:90-92":  {"127.0.0.1", 80, 90, 3, "TCP"},
		"[2001:DB8::23]:80:8080": {"2001:DB8::23", 80, 8080, 1, "TCP"},
		"::1:80:8080":            {"::1", 80, 8080, 1, "TCP"},
	} {
		if got, err := ParsePublishedPort(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"80:80/sctp": "tcp or udp", "[::1:80:80": "is not an IP address", "localhost:80:80": "is not an IP address", "fe80::1%eth0:80:80": "is not an IP address",
		"0:80": "is not a port", "80:65536": "is not a port", "9-8:1-2": "is not a port", "80:": "is not a port", "1-2:1-3": "different lengths", "1-2:1": "different lengths",
	} {
		if got, err := ParsePublishedPort(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", text, got, err, want)
		}
	}
}
