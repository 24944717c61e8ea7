// Package printers writes objects as kubectl get does: rows of a table, JSON, YAML, JSONPath, and it has the
// selectors and orders of such lists.
package printers
