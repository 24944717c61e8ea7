// Package policy checks images by containers-policy.json(5).
package policy
