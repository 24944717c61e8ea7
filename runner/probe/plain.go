package probe

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/podrun/podrun/internal/pod"
)

// maxRequest limits a plain request: a socket takes it whole.
const maxRequest = 4 << 10

// Plain returns what Run connects to and sends, for a probe that is so simple that another process can run it:
// by TCP or plain HTTP, of a server that is reached inside the pod's network. The request is "" if an open port
// is a success.
func (p *Prober) Plain(h *pod.Handler) (server netip.AddrPort, request string, ok bool) {
	switch {
	case h.TCP != nil:
		server, ok = p.within(h.TCP.Host, h.TCP.Port)
	case h.HTTP != nil && !h.HTTP.TLS && !h.HTTP.HTTP2:
		if server, ok = p.within(h.HTTP.Host, h.HTTP.Port); ok {
			request, ok = p.render(h.HTTP)
		}
	}
	return server, request, ok
}

// within returns the address of a server of the pod.
func (p *Prober) within(host string, port int) (netip.AddrPort, bool) {
	if host == "" {
		host = p.host
	}
	a, err := netip.ParseAddr(host)
	return netip.AddrPortFrom(a, uint16(port)), err == nil && (host == p.host || a.IsLoopback()) && port > 0 && port < 1<<16
}

// render returns the text of the kubelet's request.
func (p *Prober) render(h *pod.HTTPGet) (string, bool) {
	req, err := p.request(context.Background(), h, "kube-probe/"+version)
	if err != nil || !sendable(req.Header) {
		return "", false
	}
	req.Close = true
	var text strings.Builder
	err = req.Write(&text)
	return text.String(), err == nil && text.Len() <= maxRequest
}

// sendable reports whether a header can contain its values (RFC 9110, section 5.5).
func sendable(header http.Header) bool {
	for _, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return false
			}
		}
	}
	return true
}
