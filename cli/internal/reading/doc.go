// Package reading is what commands make of a pod's files that only look: its status, its logs
// and tables of pods. Both fronts show the same by the same code, so it knows neither flags nor
// manifests.
package reading
