package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// version is the version of Kubernetes whose probes these are. Servers recognize probes by the user agent.
const version = "1.37"

// maxBody is how much of an answer is read (Kubernetes: pkg/probe/http).
const maxBody = 10 << 10

func (p *Prober) http(ctx context.Context, h *pod.HTTPGet, timeout time.Duration) (lifecycle.Outcome, string) {
	ctx, cancel := withProbeContext(ctx)
	defer cancel()
	ctx, done := context.WithTimeout(ctx, timeout)
	defer done()
	req, err := p.request(ctx, h, "kube-probe/"+version)
	if err != nil {
		return lifecycle.Unknown, err.Error()
	}
	client := http.Client{Transport: p.transport(h), CheckRedirect: sameHost}
	res, err := client.Do(req)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded): // the wording of a client with a time-out
		return lifecycle.Failure, err.Error() + " (Client.Timeout exceeded while awaiting headers)"
	case err != nil:
		return lifecycle.Failure, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	switch {
	case err != nil:
		return lifecycle.Unknown, err.Error()
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return lifecycle.Success, "Probe terminated redirects, Response body: " + string(body)
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return lifecycle.Success, ""
	}
	// The body is not part of the message: it may contain confidential data (kubernetes#99425).
	return lifecycle.Failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", res.StatusCode)
}

// Notify sends the request of a hook. Any answer is a success. A reason, unless it is "", is added to the query. If
// the server answers HTTPS with plain HTTP, the request is repeated by HTTP.
func (p *Prober) Notify(ctx context.Context, h *pod.HTTPGet, reason string) error {
	err := p.notify(ctx, h, reason)
	if h.TLS && err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		plain := *h
		plain.TLS = false
		plain.Headers = nil
		for _, header := range h.Headers {
			if !strings.EqualFold(header.Name, "Authorization") {
				plain.Headers = append(plain.Headers, header)
			}
		}
		return p.notify(ctx, &plain, reason)
	}
	return err
}

func (p *Prober) notify(ctx context.Context, h *pod.HTTPGet, reason string) error {
	ctx, cancel := withProbeContext(ctx)
	defer cancel()
	req, err := p.request(ctx, h, "kube-lifecycle/"+version)
	if err != nil {
		return err
	}
	if reason != "" {
		query := "reason=" + url.QueryEscape(reason)
		if req.URL.RawQuery != "" {
			query = req.URL.RawQuery + "&" + query
		}
		req.URL.RawQuery = query
	}
	client := http.Client{Transport: p.transport(h), CheckRedirect: sameHost}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, maxBody)) // the content of the answer does not matter
	return nil
}

func (p *Prober) transport(h *pod.HTTPGet) http.RoundTripper {
	if h.HTTP2 && !h.TLS {
		return p.h2c
	}
	return p.general
}

// request builds the kubelet's request. A path that cannot be parsed is used literally.
func (p *Prober) request(ctx context.Context, h *pod.HTTPGet, agent string) (*http.Request, error) {
	u, err := url.Parse(h.Path)
	if err != nil {
		u = &url.URL{Path: h.Path}
	}
	u.Scheme, u.Host = "http", p.address(h.Host, h.Port)
	if h.TLS {
		u.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, header := range h.Headers {
		req.Header.Add(header.Name, header.Value)
	}
	if _, given := req.Header["User-Agent"]; !given {
		req.Header.Set("User-Agent", agent)
	}
	if _, given := req.Header["Accept"]; !given {
		req.Header.Set("Accept", "*/*")
	} else if req.Header.Get("Accept") == "" {
		req.Header.Del("Accept")
	}
	req.Host = req.Header.Get("Host")
	return req, nil
}

// sameHost follows redirects within a host only: the answer of another host does not describe the
// container.
func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
