// Package podview reads the state of a pod from its files: status, logs and tables. The fast path
// (cli/quick) links it, too, so it knows neither flags nor manifests.
package podview
