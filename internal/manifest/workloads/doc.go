// Package workloads makes the pods, claims and Jobs of stored workloads, and the input of workload.Decide.
package workloads
