package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// HostOf returns the name or the address in a request's Host header, without the port; "" if the header has
// another form. Any port is allowed: ssh -L listens on another than the server.
func HostOf(r *http.Request) string {
	name := r.Host
	if h, port, err := net.SplitHostPort(r.Host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return ""
		}
		name = h
	} else if inner, ok := strings.CutPrefix(r.Host, "["); ok {
		if name, ok = strings.CutSuffix(inner, "]"); !ok {
			return ""
		}
	}
	return name
}

// IsLoopback reports whether a name or an address is this machine's loopback.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.IsLoopback()
}
