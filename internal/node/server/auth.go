package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// User is an authenticated client.
type User struct {
	Name   string
	Groups []string
	UID    string
	Extra  map[string]authorizationv1.ExtraValue
}

// Reviewer asks the API server about clients.
type Reviewer interface {
	ReviewToken(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error)
	ReviewAccess(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

// How long answers of the API server are used again (kubelet: authentication.webhook.cacheTTL,
// authorization.webhook.cacheAuthorizedTTL and cacheUnauthorizedTTL).
const (
	tokenTime   = 2 * time.Minute
	refusedTime = 10 * time.Second
	allowedTime = 5 * time.Minute
	deniedTime  = 30 * time.Second
	reviewTime  = 10 * time.Second // for one question
	maxCached   = 1024             // answers
)

// authorizer admits the clients that the API server permits.
type authorizer struct {
	node     string
	reviewer Reviewer
	tokens   cache[[sha256.Size]byte, *User]
	access   cache[string, bool]
}

func newAuthorizer(node string, r Reviewer) *authorizer { return &authorizer{node: node, reviewer: r} }

// wrap returns a handler that serves permitted requests. A client without a certificate or a token of the cluster is
// refused.
func (a *authorizer) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
		defer cancel()
		user, err := a.authenticate(ctx, r)
		switch {
		case err != nil:
			http.Error(w, "the API server does not answer: "+err.Error(), http.StatusServiceUnavailable)
			return
		case user == nil:
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		for _, sub := range subresources(r.URL.Path) {
			allowed, err := a.authorize(ctx, user, verb(r), sub)
			if err != nil {
				http.Error(w, "the API server does not answer: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
			if allowed {
				next.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "Forbidden (user="+user.Name+", verb="+verb(r)+", resource=nodes, subresource(s)=["+strings.Join(subresources(r.URL.Path), " ")+"])", http.StatusForbidden)
	})
}

// authenticate returns the client of a request; nil if the client is not known. The TLS library has verified the
// client's certificate, if there is one.
func (a *authorizer) authenticate(ctx context.Context, r *http.Request) (*User, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		subject := r.TLS.VerifiedChains[0][0].Subject
		if subject.CommonName != "" {
			return &User{Name: subject.CommonName, Groups: append(slices.Clone(subject.Organization), "system:authenticated")}, nil
		}
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return nil, nil
	}
	key := sha256.Sum256([]byte(token))
	if user, ok := a.tokens.get(key); ok {
		return user, nil
	}
	st, err := a.reviewer.ReviewToken(ctx, token)
	if err != nil {
		return nil, err
	}
	if !st.Authenticated {
		a.tokens.put(key, nil, refusedTime)
		return nil, nil
	}
	user := &User{Name: st.User.Username, Groups: st.User.Groups, UID: st.User.UID, Extra: map[string]authorizationv1.ExtraValue{}}
	for name, value := range st.User.Extra {
		user.Extra[name] = authorizationv1.ExtraValue(value)
	}
	a.tokens.put(key, user, tokenTime)
	return user, nil
}

// authorize reports whether a client may use a part of the node.
func (a *authorizer) authorize(ctx context.Context, u *User, verb, subresource string) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: u.Name, Groups: u.Groups, UID: u.UID, Extra: u.Extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: a.node},
	}
	key, err := json.Marshal(spec)
	if err != nil {
		return false, fmt.Errorf("encode an access: %w", err)
	}
	if allowed, ok := a.access.get(string(key)); ok {
		return allowed, nil
	}
	st, err := a.reviewer.ReviewAccess(ctx, spec)
	if err != nil {
		return false, err
	}
	allowed, life := st.Allowed && !st.Denied, deniedTime
	if allowed {
		life = allowedTime
	}
	a.access.put(string(key), allowed, life)
	return allowed, nil
}

// verb returns the API's verb for a request (kubelet: pkg/kubelet/server/auth.go). A request for streams is of the verb
// create, whatever its method: with a websocket, whose method is GET, a client that may only read could execute commands.
func verb(r *http.Request) string {
	if len(r.Header.Values("Upgrade")) > 0 {
		return "create"
	}
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// subresources returns the subresources of the node for a path: access to one of them permits the request (kubelet:
// pkg/kubelet/server/auth.go).
func subresources(path string) []string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "pods", "healthz", "configz":
		return []string{first, "proxy"}
	case "runningpods":
		return []string{"pods", "proxy"}
	case "stats", "metrics":
		return []string{first}
	case "logs":
		return []string{"log"}
	}
	return []string{"proxy"}
}

// cache keeps answers for a time.
type cache[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]cached[V]
}

type cached[V any] struct {
	value V
	until time.Time
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	return e.value, ok && time.Now().Before(e.until)
}

func (c *cache[K, V]) put(key K, value V, life time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = map[K]cached[V]{}
	}
	c.entries[key] = cached[V]{value, time.Now().Add(life)}
}
