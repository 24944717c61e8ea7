package node

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// ReviewToken asks the API server whose token it is.
func (a *Agent) ReviewToken(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer := &authenticationv1.TokenReview{}
	if err := a.Client.Create(ctx, "/apis/authentication.k8s.io/v1/tokenreviews", review, answer); err != nil {
		return answer.Status, fmt.Errorf("review a token: %w", err)
	}
	return answer.Status, nil
}

// ReviewAccess asks the API server whether a user may do something.
func (a *Agent) ReviewAccess(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	review, answer := &authorizationv1.SubjectAccessReview{Spec: spec}, &authorizationv1.SubjectAccessReview{}
	if err := a.Client.Create(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, answer); err != nil {
		return answer.Status, fmt.Errorf("review an access: %w", err)
	}
	return answer.Status, nil
}
