package node

import (
	"context"
	"fmt"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxTokenAge is the age at which a token is requested again at the latest.
const maxTokenAge = 24 * time.Hour

// refreshIn returns after how long a token has to be requested again: after 80 % of its life, at the latest after
// maxTokenAge (kubelet: pkg/kubelet/token/token_manager.go).
func refreshIn(life time.Duration) time.Duration { return min(life*8/10, maxTokenAge) }

// requestTokens requests the tokens that a pod mounts, and stores them as Secrets. It returns when the first of them
// has to be requested again; the zero time if the pod mounts none.
func (w *worker) requestTokens(ctx context.Context, p *corev1.Pod) (refresh time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for _, t := range tokensOf(p.DeepCopy()) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: t.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID},
		}}
		if t.Audience != "" {
			request.Spec.Audiences = []string{t.Audience}
		}
		answer, asked := &authenticationv1.TokenRequest{}, time.Now()
		path := fmt.Sprintf("/api/v1/namespaces/%s/serviceaccounts/%s/token", url.PathEscape(p.Namespace), url.PathEscape(accountOf(p)))
		err := w.agent.Client.Create(ctx, path, request, answer)
		if err != nil {
			return refresh, fmt.Errorf("request a token of service account %s: %w", accountOf(p), err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: t.secret(p), Namespace: p.Namespace}, Data: map[string][]byte{corev1.ServiceAccountTokenKey: []byte(answer.Status.Token)}}
		if err := w.agent.Engine.PutSecret(ctx, secret); err != nil {
			return refresh, err
		}
		moment := asked.Add(refreshIn(answer.Status.ExpirationTimestamp.Sub(asked)))
		if refresh.IsZero() || moment.Before(refresh) {
			refresh = moment
		}
	}
	return refresh, nil
}

// putEmptyTokens stores empty tokens, so that a pod can start while the API server cannot be reached. The tokens
// follow when it can.
func (w *worker) putEmptyTokens(ctx context.Context, p *corev1.Pod) error {
	for _, t := range tokensOf(p.DeepCopy()) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: t.secret(p), Namespace: p.Namespace}, Data: map[string][]byte{corev1.ServiceAccountTokenKey: {}}}
		if err := w.agent.Engine.PutSecret(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}
