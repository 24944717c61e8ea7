package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/sleep"
)

// Sizes in bytes that an answer may have.
const (
	objectLimit = 10 << 20
	listLimit   = 64 << 20
	errorLimit  = 64 << 10
	textLimit   = 2048 // text of an error that is not a Status (client-go: maxUnstructuredResponseTextBytes)
)

const (
	headerTimeout = 30 * time.Second
	bodyTimeout   = 2 * time.Minute
	maxAttempts   = 10               // of a request that the server postpones (client-go: maxRetries)
	maxRetryAfter = 30 * time.Second // limits the Retry-After of the server
)

// Client sends requests to one API server. Several goroutines may use it.
//
// The chain of an error of the server contains an *apierrors.StatusError. A request that the server postpones by
// Retry-After is sent again, up to 10 times, as by client-go.
type Client struct {
	server    string
	token     string
	tls       *tls.Config
	transport atomic.Pointer[http.Transport]
}

// NewClient returns a client; it connects with the first request.
func NewClient(c *Config) (*Client, error) {
	server, err := c.baseURL()
	if err != nil {
		return nil, err
	}
	t, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	client := &Client{server: server, token: c.Token, tls: t}
	client.transport.Store(newTransport(t))
	return client, nil
}

// CloseIdleConnections has the next request open a new connection, with the current client certificate. Requests and
// watches that run keep their connection until they end.
func (c *Client) CloseIdleConnections() {
	c.transport.Swap(newTransport(c.tls)).CloseIdleConnections()
}

// Get reads the object at a path like /api/v1/nodes/x, which may have a query. An object has up to 10 MiB, a list up
// to 64 MiB.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.do(ctx, request{method: http.MethodGet, path: path}, into)
}

// Create creates an object in the collection at path; into, which may be nil, receives the created object.
func (c *Client) Create(ctx context.Context, path string, object, into any) error {
	return c.send(ctx, http.MethodPost, path, object, into)
}

// Update replaces the object at path; into, which may be nil, receives the new object.
func (c *Client) Update(ctx context.Context, path string, object, into any) error {
	return c.send(ctx, http.MethodPut, path, object, into)
}

// Patch changes the object at path; into, which may be nil, receives the new object.
func (c *Client) Patch(ctx context.Context, path string, kind types.PatchType, body []byte, into any) error {
	return c.do(ctx, request{http.MethodPatch, path, string(kind), body}, into)
}

// Delete deletes the object at path; options may be nil.
func (c *Client) Delete(ctx context.Context, path string, options *metav1.DeleteOptions) error {
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	return c.send(ctx, http.MethodDelete, path, options, nil)
}

// PodPath returns the path of a pod or, with "status" or "ephemeralcontainers", of its subresource.
func PodPath(namespace, name string, subresource ...string) string {
	path := "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods/" + url.PathEscape(name)
	for _, s := range subresource {
		path += "/" + url.PathEscape(s)
	}
	return path
}

func (c *Client) send(ctx context.Context, method, path string, object, into any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("%s %s: encode the object: %w", method, path, err)
	}
	return c.do(ctx, request{method, path, "application/json", body}, into)
}

// request is an HTTP request to the server.
type request struct {
	method, path, contentType string
	body                      []byte
}

// do sends a request until the server no longer postpones it, and decodes the answer.
func (c *Client) do(ctx context.Context, r request, into any) error {
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, r, into)
		if err == nil {
			return nil
		}
		wait := retryAfter(err)
		if wait == 0 || attempt == maxAttempts || sleep.For(ctx, wait) != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
	}
}

var (
	errNoHeader = errors.New("the server does not answer within 30 s")
	errNoBody   = errors.New("the server does not complete its answer within 2 minutes")
)

// attempt sends a request once. It decodes the answer unless into is nil.
func (c *Client) attempt(ctx context.Context, r request, into any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := time.AfterFunc(headerTimeout, func() { cancel(errNoHeader) })
	defer header.Stop()
	resp, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	header.Stop()
	defer time.AfterFunc(bodyTimeout, func() { cancel(errNoBody) }).Stop()
	limit := objectLimit
	if _, ok := into.(metav1.ListInterface); ok {
		limit = listLimit
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: %w", cause(ctx, err))
	case len(answer) > limit:
		return fmt.Errorf("read the answer: it is larger than %d MiB", limit>>20)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	return nil
}

// open sends a request. If it succeeds, open returns the answer, whose body the caller closes.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	if !strings.HasPrefix(r.path, "/") {
		return nil, errors.New("the path does not begin with a slash")
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.server+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "podrun")
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.transport.Load().RoundTrip(req) // a transport follows no redirect
	if err != nil {
		return nil, cause(ctx, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized && c.tls.GetClientCertificate != nil {
		c.CloseIdleConnections() // the client certificate of this connection may have expired, and may have been replaced
	}
	return nil, answerError(resp, r.method)
}

// cause returns the reason why ctx was cancelled, if it was, instead of err, which follows from that.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// answerError returns the error that an answer states.
func answerError(resp *http.Response, method string) error {
	if resp.StatusCode < 400 {
		return fmt.Errorf("the server answers %q, and redirects are refused", resp.Status)
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorLimit)) // the code is enough
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))   // 0 if it is a date, which API servers do not send
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.Status == metav1.StatusSuccess {
		text := strings.ToValidUTF8(string(body[:min(len(body), textLimit)]), "")
		return apierrors.NewGenericServerResponse(resp.StatusCode, method, schema.GroupResource{}, "", strings.TrimSpace(text), seconds, true)
	}
	status.Code = int32(resp.StatusCode)
	if seconds > 0 {
		if status.Details == nil {
			status.Details = &metav1.StatusDetails{}
		}
		status.Details.RetryAfterSeconds = int32(min(seconds, 1<<30))
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// retryAfter returns how long the server asks to wait before the request is sent again; 0 if the request must not be
// sent again. Only after 429 and 5xx it may be (client-go: rest/with_retry.go IsNextRetry).
func retryAfter(err error) time.Duration {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return 0
	}
	if code := status.Status().Code; code != http.StatusTooManyRequests && code < 500 {
		return 0
	}
	return min(time.Duration(status.Status().Details.RetryAfterSeconds)*time.Second, maxRetryAfter)
}
