// Package archtest is the law of the house as tests: which room may import which,
// which room a third-party library lives in, what a pure room may not touch, and
// how long things may get. The tables with their reasons are in law_test.go.
//
// A failure names the file, the rule, its reason and what to do. Where the rule is
// wrong, change the table and docs/explanation/architecture.md together.
package archtest
